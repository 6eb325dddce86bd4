"""The Discord bot."""

from packetgate.plugins import Command

COMMAND = Command("packetgate.connectors.discord.command:discord", "Answer on Discord until stopped.")
