"""The palette: choose the few tools that a turn may use, and render their texts for a prompt."""
