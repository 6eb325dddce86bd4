"""User approval: build questions and previews, read replies, and apply replies to the packet."""
