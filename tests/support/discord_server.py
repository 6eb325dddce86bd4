"""A local stand-in for Discord, and actions of its users."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from support.discord_payloads import BOT, Payload, file, interaction, new_id
from support.discord_rest import RestInterface

EPHEMERAL, SUPPRESS_EMBEDS = 64, 4
NOTE, UPDATE = 4, 7
"""The immediate answer to an interaction."""


class DiscordStandIn(RestInterface):
    """Sends users' messages to the bot, and receives the bot's actions."""

    async def say(self, who: int, where: int, content: str, **more: Any) -> Payload:
        """Send a message in a channel to the bot."""
        sent = self.keep(who, where, content, **more)
        await self.gateway.dispatch("MESSAGE_CREATE", sent)
        return sent

    def attach(self, name: str, data: bytes, size: int | None = None, kind: str | None = None) -> Payload:
        """Upload a file; return it as an attachment."""
        attached = file(self.url, name, len(data) if size is None else size, kind)
        self.files[attached["id"]] = data
        return attached

    def by_bot(self, where: int) -> list[Payload]:
        """Return the bot's current messages in a channel."""
        place = (str(BOT), str(where))
        return [one for one in self.messages.values() if (one["author"]["id"], one["channel_id"]) == place]

    async def answer(self, where: int, words: str) -> Payload:
        """Wait for a message of the bot that contains these words, and return it."""
        return await self.until(lambda: next((one for one in self.by_bot(where) if words in one["content"]), None))

    async def question(self, where: int, words: str = "") -> Payload:
        """Wait for a message of the bot that has buttons, and return it."""

        def found() -> Payload | None:
            asking = [one for one in self.by_bot(where) if one["components"] and words in json.dumps(one)]
            return asking[-1] if asking else None

        return await self.until(found)

    async def interact(self, who: int, where: int, kind: int, data: Payload, on: Payload | None = None) -> Payload:
        """Send an interaction, and return the bot's immediate answer."""
        sent = interaction(who, where, kind, data, on)
        path = f"/interactions/{sent['id']}/{sent['token']}/callback"
        self._about[sent["id"]] = on["id"] if on is not None else ""
        await self.gateway.dispatch("INTERACTION_CREATE", sent)
        arrived = await self.until(lambda: next((one for one in self.arrived if one.path == path), None))
        return {**arrived.body, "token": sent["token"]}

    async def press(self, who: int, on: Payload, label: str) -> Payload:
        """Press a message's button with this label."""
        buttons = [button for row in on["components"] for button in row["components"]]
        wanted = next(button for button in buttons if button["label"].startswith(label))
        data = {"custom_id": wanted["custom_id"], "component_type": 2}
        return await self.interact(who, int(on["channel_id"]), 3, data, on)

    async def complete(self, who: int, where: int, name: str, typed: str) -> list[str]:
        """Type the first characters of a command option; return the completions."""
        option = {"name": "name", "type": 3, "value": typed, "focused": True}
        answer = await self.interact(who, where, 4, {"id": new_id(), "name": name, "type": 1, "options": [option]})
        return [choice["value"] for choice in answer["data"]["choices"]]

    async def command(self, who: int, where: int, name: str, /, **options: str) -> str:
        """Run a slash command; return its answers."""
        chosen = [{"name": option, "type": 3, "value": value} for option, value in options.items()]
        answer = await self.interact(who, where, 2, {"id": new_id(), "name": name, "type": 1, "options": chosen})
        if answer["type"] == NOTE:
            return str(answer["data"]["content"])
        path = f"/webhooks/{BOT}/{answer['token']}"
        sent = await self.until(lambda: [one for one in self.arrived if one.path == path])
        assert all(one.body["flags"] & EPHEMERAL for one in sent)
        return "\n".join(one.body["content"] for one in sent)


@asynccontextmanager
async def serve_discord() -> AsyncIterator[DiscordStandIn]:
    """Serve on a free port until the end of the block."""
    discord, app = DiscordStandIn(), web.Application()
    app.router.add_route("*", "/{path:.*}", discord.handle)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    discord.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    discord.gateway.url = discord.url.replace("http", "ws", 1)
    try:
        yield discord
    finally:
        await runner.cleanup()
