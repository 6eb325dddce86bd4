"""Whether the tools needed are on the palette."""
