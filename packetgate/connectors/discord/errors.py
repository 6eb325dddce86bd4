"""What may go wrong between the bot and Discord."""

import aiohttp
import discord

UNSENT = (discord.HTTPException, aiohttp.ClientError)
"""Discord refuses a request, or cannot be reached."""
