"""Where a call's arguments come from, part by part, and which of them the user must see before it runs."""
