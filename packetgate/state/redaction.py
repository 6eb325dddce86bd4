"""Replace secrets in text and data by marks that name the secrets."""

import base64
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

from packetgate.state.private_names import environment_state

MARK = re.compile(r"\[redacted: [^\[\]\n]{1,80}\]")
MIN_CHARS = 8
"""Minimum length of a secret that is found by its value. Shorter values may occur in any text."""

_WORDS = (
    "secret|token|password|passwd|passphrase|pwd|api_key|api-key|apikey|access_key|private_key|credential|credentials"
)
_SECRET_NAME = re.compile(rf"(?i)(?:{_WORDS.replace('_', '[_-]?')})$")
_SECRET_VARIABLE = re.compile(rf"(?i)(?:{_WORDS}|(?:^|_)(?:KEY|AUTH|DSN))$")
_PAGING = re.compile("(?i)page|next|cursor|contin|sync|csrf|max|num|count")
"""Matches names of harmless tokens, such as page cursors, that later calls need."""
_SHAPES = (
    (
        "private key",
        "-----BEGIN ",
        r"(?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:[^-]++|-(?!----))*+(?:-----END [A-Z0-9 ]{0,40}-----)?",
    ),
    ("AWS key", "AKIA", r"[0-9A-Z]{16}\b"),
    ("AWS key", "ASIA", r"[0-9A-Z]{16}\b"),
    ("GitHub token", "gh", r"[pousr]_[A-Za-z0-9]{36,255}\b"),
    ("GitHub token", "github_pat_", r"[A-Za-z0-9_]{22,255}\b"),
    ("GitLab token", "glpat-", r"[A-Za-z0-9_-]{20,64}"),
    ("Slack token", "xox", r"[abeoprs]-[A-Za-z0-9-]{10,250}"),
    ("API key", "sk-", r"[A-Za-z0-9_-]{20,250}"),
    ("Google key", "AIza", r"[A-Za-z0-9_-]{35}\b"),
    ("JWT", "eyJ", r"[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,2000}"),
)
"""Well-known secrets: name, beginning and pattern of the rest."""
_COMPILED = tuple((name, begin, re.compile(begin + rest)) for name, begin, rest in _SHAPES)
_BEARER = re.compile(r"(?i)((?:bearer|basic)\s{1,5})([A-Za-z0-9+/=._~-]{16,4000})")
_USERINFO = re.compile(r"(://[^\s/:@\"'<>]{0,200}:)([^\s/@\"'<>\[]{1,500})(@)")
_ASSIGNED = re.compile(
    rf"""(?ix) (?P<word>{_WORDS}) (?P<between>["']?\ ?[:=]\ ?)
    (?: (?P<quote>["'])(?P<quoted>[^\s"'$<{{(\[][^\s"']{{5,500}})(?P=quote)
      | (?P<bare>(?=[^\s"',;]{{0,500}}[0-9])(?=[^\s"',;]{{0,500}}[a-z])[a-z0-9+/=_.~!@\#%^&*-]{{8,500}})
        (?=[\s"',;]|$) )"""
)
"""Matches the name of a secret and a literal value: in quotes, or with letters and digits."""
_DOTENV = re.compile(rf"(?m)(?P<word>(?:{_WORDS.upper()}|_KEY))(?P<between>=)(?P<value>[^\s\"'$\[][^\n]{{3,2000}})$")
_NAME_BEFORE = re.compile(r"[\w.-]{0,60}\Z")
_HARMLESS_HEADERS = frozenset("accept content-type user-agent accept-language accept-encoding".split())

_learned: dict[str, str] = {}
"""Names of the configuration's secrets, by value."""


def learn_secret(name: str, value: str) -> None:
    """Treat a value as a secret in this process, unless the value is short or a path."""
    if len(value) >= MIN_CHARS and not value.startswith("/"):
        _learned[value] = name


def learn_entry_secrets(server: str, entry: Mapping[str, Any]) -> None:
    """Learn the secrets of a server's expanded entry in `mcp.json`."""
    for name, value in _texts(entry.get("env")):
        if _SECRET_VARIABLE.search(name):
            learn_secret(name, value)
    for name, value in _texts(entry.get("headers")):
        if name.lower() not in _HARMLESS_HEADERS:
            learn_secret(f"{name} of {server}", re.sub(r"(?i)^(?:bearer|basic|token)\s+", "", value))
    if isinstance(entry.get("auth"), str) and entry["auth"] != "oauth":
        learn_secret(f"auth of {server}", entry["auth"])
    for name, value in _texts(entry.get("oauth")):
        if is_secret_name(name):
            learn_secret(f"{name} of {server}", value)


def is_secret_name(name: str) -> bool:
    """Whether a field's name is that of a secret."""
    return _SECRET_NAME.search(name) is not None and _PAGING.search(name) is None


def redacted(text: str) -> str:
    """Return a text without secrets, found by value, by shape, or by their name in the text.

    Blocking: some hundredths of a second for a megabyte.
    """
    for value, name in _spellings(tuple(_learned.items()), environment_state()):
        if value in text:
            text = text.replace(value, _mark(name))
    for name, begin, shape in _COMPILED:
        if begin in text:
            text = shape.sub(lambda match, name=name: _marked_shape(match, name), text)  # type: ignore[misc]
    if "://" in text and "@" in text:
        text = _USERINFO.sub(lambda match: match[1] + _mark("password") + match[3], text)
    lowered = text.casefold()
    if "bearer" in lowered or "basic" in lowered:
        text = _BEARER.sub(lambda match: match[1] + _mark("authorization"), text)
    if any(word in lowered for word in _WORDS.split("|")) or "_KEY=" in text:
        text = _ASSIGNED.sub(_marked_assignment, _DOTENV.sub(_marked_assignment, text))
    return text


def redacted_data(value: Any, name: str = "") -> Any:
    """Return JSON data without secrets; a text in a field with a secret's name counts as a secret."""
    match value:
        case str():
            return _mark(name) if value and is_secret_name(name) and not MARK.fullmatch(value) else redacted(value)
        case list():
            return [redacted_data(inner, name) for inner in value]
        case dict():
            return {key: redacted_data(inner, str(key)) for key, inner in value.items()}
    return value


def has_redaction_mark(value: Any) -> bool:
    """Whether a text or data contains a mark."""
    return MARK.search(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) is not None


def _marked_shape(match: re.Match[str], name: str) -> str:
    before = match.string[match.start() - 1 : match.start()]
    return match[0] if before.isalnum() and name != "private key" else _mark(name)


def _marked_assignment(match: re.Match[str]) -> str:
    groups = match.groupdict()
    value = groups.get("value") or groups.get("quoted") or groups.get("bare") or ""
    before = _NAME_BEFORE.search(match.string, max(0, match.start() - 60), match.start())
    name = (before[0] if before else "") + groups["word"]
    if MARK.search(value) or (name != name.upper() and not is_secret_name(name)):
        return match[0]
    ticks = groups.get("quote") or ""
    return f"{groups['word']}{groups['between']}{ticks}{_mark(name)}{ticks}"


def _mark(name: str) -> str:
    return f"[redacted: {re.sub(r'[^ -Z^-~]', '', name)[:80] or 'secret'}]"


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""


@lru_cache(maxsize=4)
def _spellings(learned: tuple[tuple[str, str], ...], _environment: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
    """Return all spellings of the learned secrets, and of those in environment variables; longest first."""
    secrets, names, environment = [*learned], dict[str, str](), tuple(os.environ.items())
    secrets += [(value, name) for name, value in environment if _SECRET_VARIABLE.search(name) and value[:1] != "/"]
    secrets += [(_password(value), f"password in {name}") for name, value in environment if "://" in value]
    for value, name in secrets:
        if len(value) < MIN_CHARS:
            continue
        encoded = base64.b64encode(value.encode(errors="replace")).decode()
        quoted, in_json = (quote(value), quote(value, safe="")), json.dumps(value)[1:-1]
        for spelled in (value, *quoted, repr(value)[1:-1], in_json, encoded):
            names.setdefault(spelled, name)
    return tuple(sorted(names.items(), key=lambda item: -len(item[0])))


def _texts(section: Any) -> list[tuple[str, str]]:
    return [(str(name), str(value)) for name, value in section.items()] if isinstance(section, dict) else []
