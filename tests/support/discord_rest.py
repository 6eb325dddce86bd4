"""The part of Discord's REST API that the bot uses, with messages in memory."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web
from support.discord_gateway import Gateway
from support.discord_payloads import ADA, BOT, EVE, ROLES, Payload, member, message, new_id, user

T = TypeVar("T")

TOKEN = "stand-in.token"
PATIENCE_S = 30
API = "/api/v10"
UPDATE = 7
"""The answer to an interaction that changes the message."""


@dataclass(frozen=True)
class Arrived:
    """A request that the bot sent."""

    method: str
    path: str
    body: Payload
    files: dict[str, bytes] = field(default_factory=dict)


class RestInterface:
    """Handles the bot's requests, and stores the resulting messages."""

    def __init__(self) -> None:
        self.url = ""
        self.arrived: list[Arrived] = []
        self.messages: dict[str, Payload] = {}
        """All current messages by id, oldest first."""
        self.files: dict[str, bytes] = {}
        self.gone: set[int] = set()
        """Users that have left the server."""
        self.gateway = Gateway(TOKEN, self.tell)
        self._about: dict[str, str] = {}
        self._news = asyncio.Event()

    async def until(self, found: Callable[[], T]) -> T:
        """Wait until `found` returns a value, and return it."""
        async with asyncio.timeout(PATIENCE_S):
            while not (result := found()):
                self._news.clear()
                await self._news.wait()
        return result

    def tell(self) -> None:
        """Wake up waiting tests."""
        self._news.set()

    def keep(self, who: int, where: int, content: str, **more: Any) -> Payload:
        """Store a message without notifying the bot."""
        stored = message(who, where, content, **more)
        self.messages[stored["id"]] = stored
        return stored

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix(API)
        if path == "/gateway":
            return await self.gateway.handle(request)
        if path.startswith("/files/"):
            data = self.files.get(path.removeprefix("/files/"))
            return web.Response(body=data) if data is not None else web.Response(status=404)
        body, files = await _read(request)
        if request.headers.get("Authorization") not in {f"Bot {TOKEN}", None}:
            return _json({"message": "401: Unauthorized", "code": 0}, 401)
        answer = self._answer(request.method, path, body)
        self.arrived.append(Arrived(request.method, path, body, files))
        self.tell()
        if answer is None:
            return _json({"message": "Unknown", "code": 10_008}, 404)
        return _json(answer) if answer != {} else web.Response(status=204)

    def _answer(self, method: str, path: str, body: Any) -> Any:
        """Return the answer to a request; an empty answer means status 204, and None means 404."""
        match [method, *path.strip("/").split("/")]:
            case ["GET", "users", "@me"]:
                return user(BOT)
            case ["GET", "oauth2", "applications", "@me"]:
                about = {"id": str(BOT), "name": "packetgate", "description": "", "icon": None, "verify_key": ""}
                return {**about, "bot_public": False, "bot_require_code_grant": False, "owner": user(EVE), "flags": 0}
            case ["PUT", "applications", _, "commands"]:
                made = {"application_id": str(BOT), "default_member_permissions": None, "version": "1"}
                return [{**one, **made, "id": new_id()} for one in body]
            case ["POST", "channels", _, "typing"]:
                return {}
            case ["POST", "channels", where, "messages"]:
                return self._sent(int(where), body)
            case ["PATCH", "channels", _, "messages", number]:
                return self._changed(number, body)
            case ["GET", "channels", _, "messages", number]:
                return self.messages.get(number)
            case ["GET", "guilds", _, "members", number]:
                return member(int(number)) if int(number) in ROLES and int(number) not in self.gone else None
            case ["POST", "interactions", number, _, "callback"]:
                if body["type"] == UPDATE:
                    self._changed(self._about[number], body["data"])
                return {"interaction": {"id": number, "type": 3}}
            case ["POST", "webhooks", _, _]:
                return message(BOT, ADA, body["content"])
        return None

    def _sent(self, where: int, body: Payload) -> Payload:
        shown = {name: body[name] for name in ("components", "embeds", "flags") if body.get(name)}
        return self.keep(BOT, where, body.get("content") or "", **shown)

    def _changed(self, number: str, body: Payload) -> Payload | None:
        if number not in self.messages:
            return None
        changed = {name: body[name] or ([] if name == "components" else body[name]) for name in body}
        self.messages[number] = {**self.messages[number], **changed, "edited_timestamp": "2026-01-01T00:00:01+00:00"}
        return self.messages[number]


def _json(data: Any, status: int = 200, **headers: str) -> web.Response:
    """Return JSON with the exact content type that the client expects."""
    return web.Response(body=json.dumps(data).encode(), status=status, content_type="application/json", headers=headers)


async def _read(request: web.Request) -> tuple[Any, dict[str, bytes]]:
    """Return a request's JSON and files."""
    if request.content_type != "multipart/form-data":
        return (await request.json() if request.can_read_body else {}), {}
    form = await request.post()
    files = {one.filename: one.file.read() for one in form.values() if isinstance(one, web.FileField)}
    return json.loads(str(form["payload_json"])), files
