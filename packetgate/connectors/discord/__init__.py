"""The Discord bot: `packetgate discord`."""
