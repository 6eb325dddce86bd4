"""Payloads in Discord's format: users, a server with channels, messages, button presses."""

from itertools import count
from typing import Any

Payload = dict[str, Any]

BOT, ADA, BEN, EVE = 900, 901, 902, 903
"""Users: the bot, and three people."""
GUILD, TEAM_ROLE, CHIEF_ROLE = 700, 701, 702
"""The server and its roles."""
LOBBY, LAB, THREAD = 801, 802, 803
"""Channels of the server; the thread is in the lobby."""
ADAS, BENS = 810, 811
"""Direct messages of Ada and of Ben."""

NAMES = {BOT: "packetgate", ADA: "ada", BEN: "ben", EVE: "eve"}
ROLES = {ADA: [TEAM_ROLE], BEN: [], EVE: [CHIEF_ROLE]}
DIRECT = {ADAS, BENS}
TIME = "2026-01-01T00:00:00+00:00"

_ids = count(1_400_000_000_000_000_000)


def new_id() -> str:
    return str(next(_ids))


def session_name(first: Payload) -> str:
    """Return the name of the session that a message started."""
    return f"discord:{first['channel_id']}:{first['id']}"


def user(number: int) -> Payload:
    name = NAMES[number]
    return {
        "id": str(number),
        "username": name,
        "global_name": name,
        "discriminator": "0",
        "avatar": None,
        "bot": number == BOT,
    }


def member(number: int) -> Payload:
    roles = [str(role) for role in ROLES.get(number, [])]
    return {"user": user(number), "roles": roles, "joined_at": TIME, "deaf": False, "mute": False, "flags": 0}


def channel(number: int) -> Payload:
    if number in DIRECT:
        return {"id": str(number), "type": 1, "recipients": [user(ADA if number == ADAS else BEN)]}
    named = {"id": str(number), "guild_id": str(GUILD), "name": f"channel-{number}"}
    if number == THREAD:
        about = {"archived": False, "auto_archive_duration": 60, "archive_timestamp": TIME, "locked": False}
        owned = {"owner_id": str(ADA), "message_count": 0, "member_count": 1, "thread_metadata": about}
        return {**named, "type": 11, "parent_id": str(LOBBY), **owned}
    return {**named, "type": 0, "position": 0, "permission_overwrites": [], "parent_id": None}


def guild() -> Payload:
    shown = {"color": 0, "hoist": False, "managed": False, "mentionable": False, "permissions": "0", "position": 0}
    colours = {"primary_color": 0, "secondary_color": None, "tertiary_color": None}
    roles = [{"id": str(one), "name": str(one), **shown, "colors": colours} for one in (GUILD, TEAM_ROLE, CHIEF_ROLE)]
    return {
        "id": str(GUILD),
        "name": "workshop",
        "owner_id": str(EVE),
        "roles": roles,
        "channels": [channel(LOBBY), channel(LAB)],
        "threads": [channel(THREAD)],
        "members": [member(BOT)],
        "member_count": 4,
        **{empty: [] for empty in ("emojis", "stickers", "features", "presences", "voice_states")},
        **dict.fromkeys(
            ("verification_level", "explicit_content_filter", "mfa_level", "nsfw_level", "premium_tier"), 0
        ),
        **dict.fromkeys(("default_message_notifications", "system_channel_flags", "afk_timeout"), 0),
        "preferred_locale": "en-US",
    }


def message(author: int, where: int, content: str, **more: Any) -> Payload:
    """Return a message that mentions the user ids `mentions` and replies to the message `to`."""
    mentions = [user(one) for one in more.pop("mentions", ())]
    to: Payload | None = more.pop("to", None)
    reply: Payload = {}
    if to is not None:
        reference = {"message_id": to["id"], "channel_id": to["channel_id"], "type": 0}
        earlier = {
            name: value for name, value in to.items() if name != "referenced_message"
        }  # Discord sends only one level of references
        reply = {"type": 19, "message_reference": reference, "referenced_message": earlier}
    place = {} if where in DIRECT else {"guild_id": str(GUILD), "member": {**member(author), "user": None}}
    return {
        "id": new_id(),
        "channel_id": str(where),
        "author": user(author),
        "content": content,
        "timestamp": TIME,
        "edited_timestamp": None,
        "type": 0,
        "flags": 0,
        "mentions": mentions,
        **dict.fromkeys(("tts", "mention_everyone", "pinned"), False),
        **{empty: [] for empty in ("mention_roles", "attachments", "embeds", "components")},
        **place,
        **reply,
        **more,
    }


def file(url: str, name: str, size: int, kind: str | None = None) -> Payload:
    """Return an attachment; `kind` is the type that Discord detects."""
    number = new_id()
    known = {"id": number, "filename": name, "size": size, "url": f"{url}/files/{number}", "proxy_url": url}
    return {**known, "content_type": kind} if kind else known


def interaction(who: int, where: int, kind: int, data: Payload, on: Payload | None = None) -> Payload:
    """Return an interaction with the message `on`: 2 is a command, 3 a button press, 5 a form."""
    number = new_id()
    by = {"user": user(who)} if where in DIRECT else {"member": {**member(who), "permissions": "0"}}
    place = {} if where in DIRECT else {"guild_id": str(GUILD), "guild": {"id": str(GUILD)}}
    return {
        "id": number,
        "application_id": str(BOT),
        "type": kind,
        "data": data,
        "token": f"token-{number}",
        "version": 1,
        "channel": channel(where),
        "channel_id": str(where),
        "attachment_size_limit": 0,
        "entitlements": [],
        "locale": "en-US",
        **by,
        **place,
        **({"message": on} if on is not None else {}),
    }
