"""One Markdown template per prompt, and `render` to fill it in."""
