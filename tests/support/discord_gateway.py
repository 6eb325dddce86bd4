"""Discord's gateway for a bot's connection: hello, identify, heartbeats, events in order, and resuming."""

import json
import zlib
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web
from support.discord_payloads import BOT, GUILD, guild, user

DISPATCH, HEARTBEAT, IDENTIFY, PRESENCE, HELLO, ACK = 0, 1, 2, 3, 10, 11
AUTHENTICATION_FAILED, DISALLOWED_INTENTS = 4004, 4014


class Gateway:
    """One bot's session."""

    def __init__(self, token: str, told: Callable[[], None]) -> None:
        self.token = token
        self.allows_content = True
        """Whether the application may read the content of messages."""
        self.url = ""
        self.status = ""
        """The bot's status line."""
        self._told = told
        self._events: list[dict[str, Any]] = []
        self._session = ""
        self._sessions = 0
        self._connection: _Connection | None = None

    @property
    def is_connected(self) -> bool:
        """Whether a bot is connected and identified."""
        return self._connection is not None

    async def dispatch(self, event: str, data: dict[str, Any]) -> None:
        """Send an event to the connected bot."""
        self._events.append({"op": DISPATCH, "t": event, "s": len(self._events) + 1, "d": data})
        if self._connection is not None:
            await self._connection.send(self._events[-1])

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one connection."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        connection = _Connection(socket, request.query.get("compress", ""))
        await connection.send({"op": HELLO, "d": {"heartbeat_interval": 41_250}})
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            sent = json.loads(message.data)
            if sent["op"] == HEARTBEAT:
                await connection.send({"op": ACK})
                continue
            if sent["op"] == IDENTIFY:
                await self._identify(connection, sent["d"])
            if sent["op"] in {IDENTIFY, PRESENCE}:
                presence = sent["d"] if sent["op"] == PRESENCE else sent["d"].get("presence") or {}
                shown = presence.get("activities") or filter(None, [presence.get("game")])  # the name in older clients
                self.status = next((str(one["state"]) for one in shown), "")
            self._told()
        if self._connection is connection:
            self._connection = None
            self._told()
        return socket

    async def _identify(self, connection: "_Connection", given: dict[str, Any]) -> None:
        if given["token"] != self.token:
            await connection.socket.close(code=AUTHENTICATION_FAILED)
            return
        if not self.allows_content and given["intents"] & (1 << 15):
            await connection.socket.close(code=DISALLOWED_INTENTS)
            return
        self._sessions += 1
        self._session, self._events, self._connection = f"session-{self._sessions}", [], connection
        ready = {"v": 10, "user": user(BOT), "guilds": [{"id": str(GUILD), "unavailable": True}], "shard": [0, 1]}
        application = {"id": str(BOT), "flags": 0}
        url = f"{self.url}/gateway"
        await self.dispatch(
            "READY", {**ready, "application": application, "session_id": self._session, "resume_gateway_url": url}
        )
        await self.dispatch("GUILD_CREATE", guild())


class _Connection:
    def __init__(self, socket: web.WebSocketResponse, compression: str) -> None:
        self.socket = socket
        self._packer: Any = zlib.compressobj()
        self._flush = zlib.Z_SYNC_FLUSH
        if compression == "zstd-stream":  # the client requests it only if zstd is installed
            import zstandard

            self._packer, self._flush = zstandard.ZstdCompressor().compressobj(), zstandard.COMPRESSOBJ_FLUSH_BLOCK

    async def send(self, payload: dict[str, Any]) -> None:
        data = self._packer.compress(json.dumps(payload).encode())
        await self.socket.send_bytes(data + self._packer.flush(self._flush))
