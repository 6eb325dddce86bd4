"""Read one entry of `mcp.json`, from the form of any client into one form."""

import json
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from packetgate.tools.servers.variables import asked_for

LEAST_MS = 1000
"""A smaller time-out is in seconds: no server starts in so few milliseconds."""
MOST_S = 3600
"""Longest time-out, in seconds, of clients that count in seconds."""

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "command": ("command", "cmd"),
    "args": ("args", "arguments"),
    "env": ("env", "envs", "environment"),
    "cwd": ("cwd", "workingdirectory", "workdir"),
    "url": ("httpurl", "url", "serverurl", "uri", "endpoint"),
    "headers": ("headers", "httpheaders"),
    "transport": ("transport", "transporttype", "type"),
}
"""Aliases of fields, ignoring case, `_` and `-`; the first one present is used."""
_KINDS = {
    **dict.fromkeys(("stdio", "local", "process", "command"), "stdio"),
    **dict.fromkeys(("http", "https", "streamablehttp", "streamable", "remote"), "http"),
    "sse": "sse",
}
_TIMEOUTS = {
    **dict.fromkeys(("timeout", "timeoutms", "calltimeout"), 1),
    **dict.fromkeys(("timeoutseconds", "timeoutsecs", "timeoutsec", "tooltimeoutsec"), 1000),
}
"""Milliseconds per unit of each field."""
_READ = frozenset({name for alias in _ALIASES.values() for name in alias} | {*_TIMEOUTS, "trusted"})
"""Fields that are read; all others are kept unchanged."""
_OF_SECONDS = frozenset({"autoapprove", "alwaysallow", "cmd", "envs"})
"""Fields of Cline, Roo Code and goose, which count in seconds."""
_OFFERED = ("includetools", "enabledtools", "allowedtools", "availabletools", "tools")
_HIDDEN = ("excludetools", "disabledtools")
_UNITS = {"": 1, "ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min)?\s*", re.IGNORECASE)
_HOST = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\])(?P<port>:\d+)?(?:[/?].*)?")
_HERE = re.compile(r"localhost|127(?:\.\d+){3}|\[::1\]", re.IGNORECASE)
_TRUE, _FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


class UnusableEntryError(ValueError):
    """An entry cannot be used; the message says why."""


@dataclass(frozen=True)
class Entry:
    """An entry in canonical form."""

    fields: dict[str, Any]
    """`command`, `args`, `env`, `cwd`, or `url`, `headers`, `transport`; other fields unchanged."""
    enabled: bool = True
    tools: tuple[str, ...] = ()
    """Patterns of the tools to offer; empty: all."""
    hidden_tools: tuple[str, ...] = ()
    """Patterns of tools to hide."""
    notes: tuple[str, ...] = ()
    """One phrase for each value that was interpreted."""

    @property
    def server(self) -> dict[str, Any]:
        """The fields that identify the server."""
        return {key: self.fields.get(key) for key in _ALIASES if key != "transport"}


def looks_like_a_server(value: Any) -> bool:
    """Whether an object has a command or a URL."""
    known = {*_ALIASES["command"], *_ALIASES["url"]}
    return isinstance(value, dict) and any(_plain(key) in known for key in value)


def read_entry(raw: Any) -> Entry:
    """Return an entry in canonical form.

    Raises:
        UnusableEntryError: it has no server, or an ambiguous value.
    """
    return _Reading(raw).entry()


class _Reading:
    def __init__(self, raw: Any) -> None:
        if isinstance(raw, str) and raw.startswith(("http://", "https://")):
            raw = {"url": raw}
        if not isinstance(raw, dict):
            raise UnusableEntryError(f"must be an object, not {_kind(raw)}")
        if wanted := asked_for(raw):
            raise UnusableEntryError(f"an editor asks for ${{{wanted}}}: write ${{NAME}} and set that variable")
        self._raw = _unfolded({key: value for key, value in raw.items() if value is not None and value != ""})
        self._named = {_plain(key): value for key, value in reversed(self._raw.items())}
        """By normalized name; of several, the first."""
        self._notes: list[str] = []

    def entry(self) -> Entry:
        others = {key: value for key, value in self._raw.items() if _plain(key) not in _READ}
        enabled = self._enabled()
        fields = {**self._started_or_reached(), "timeout": self._timeout(), "trusted": self._trusted()}
        kept = {key: value for key, value in fields.items() if value is not None and value not in ([], {})}
        return Entry({**others, **kept}, enabled, self._names(_OFFERED), self._names(_HIDDEN), tuple(self._notes))

    def _get(self, field: str) -> Any:
        return next((self._named[alias] for alias in _ALIASES.get(field, (field,)) if alias in self._named), None)

    def _started_or_reached(self) -> dict[str, Any]:
        command, url = self._command(), self._get("url")
        kind = self._transport()
        has_url = isinstance(url, str) and url.strip() != ""
        if command and has_url:
            by = "command" if kind in {"stdio", ""} else "url"
            self._notes.append(f'it has a "command" and a "url": its {by} is used')
            has_url = by == "url"
        if has_url:
            return {"url": self._url(str(url).strip()), "headers": self._headers(), "transport": _sent(kind)}
        if not command:
            raise UnusableEntryError('needs either a "command" to start or a "url" to reach, as text')
        if kind not in {"stdio", ""}:
            self._notes.append(f"it has no url for its transport, {kind}: its command is used")
        env = self._texts("env", self._get("env"), "=")
        return {"command": command[0], "args": [*command[1:], *self._args()], "env": env, "cwd": self._cwd()}

    def _transport(self) -> str:
        given = self._get("transport")
        if given is None:
            return ""
        kind = _KINDS.get(_plain(given), "") if isinstance(given, str) else ""
        if not kind and isinstance(given, str) and _plain(given) in {"websocket", "ws"}:
            raise UnusableEntryError(f"no server is reached by {given} here: stdio, http and sse are")
        if not kind:
            self._notes.append(f"transport {_shown(given)} is not known here: passed over")
        return kind

    def _command(self) -> list[str]:
        given = self._get("command")
        if given is None or given == "":
            return []
        if isinstance(given, list):
            return self._list("command", given)
        if not isinstance(given, str):
            raise UnusableEntryError(f'"command" must be text, not {_kind(given)}')
        given = given.strip()
        if " " not in given or "${" in given or shutil.which(given):
            return [given] if given else []
        parts = _split(given)
        if len(parts) > 1 and shutil.which(parts[0]):
            self._notes.append(f"its command is read as the program {parts[0]!r} and arguments")
            return parts
        return [given]

    def _args(self) -> list[str]:
        given = self._get("args")
        if isinstance(given, str):
            self._notes.append('its "args" are one text: read as a shell does')
            return _split(given)
        return self._list("args", [] if given is None else given)

    def _list(self, field: str, given: Any) -> list[str]:
        if not isinstance(given, list):
            raise UnusableEntryError(f'"{field}" must be a list of texts, not {_kind(given)}')
        return [self._text(f"{field}.{place}", one) for place, one in enumerate(given) if one is not None]

    def _texts(self, field: str, given: Any, between: str) -> dict[str, str]:
        if isinstance(given, list):
            given = dict(self._pair(field, one, between) for one in given)
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise UnusableEntryError(f'"{field}" must be an object of texts by name, not {_kind(given)}')
        return {name: self._text(f"{field}.{name}", one) for name, one in given.items() if one is not None}

    def _pair(self, field: str, one: Any, between: str) -> tuple[str, Any]:
        match one:
            case str() if between in one:
                name, _, value = one.partition(between)
                return name.strip(), value.strip() if between == ":" else value
            case {"name": str(name), "value": value} | {"key": str(name), "value": value}:
                return name, value
        raise UnusableEntryError(f'"{field}" must be an object of texts by name')

    def _text(self, where: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        if not isinstance(value, bool | int | float):
            raise UnusableEntryError(f'"{where}" must be text, not {_kind(value)}')
        text = json.dumps(value)
        self._notes.append(f"{where}: {text} is read as text")
        return text

    def _cwd(self) -> str | None:
        given = self._get("cwd")
        if given is not None and not isinstance(given, str):
            raise UnusableEntryError(f'"cwd" must be text, not {_kind(given)}')
        return given or None

    def _url(self, url: str) -> str:
        if url.startswith("${"):
            return url
        scheme, separator, rest = url.partition("://")
        if separator and scheme.lower() in {"http", "https"} and rest:
            return f"{scheme.lower()}://{rest}"
        match = None if separator else _HOST.fullmatch(url)
        if match is None or not (match["port"] or "." in match["host"] or _HERE.fullmatch(match["host"])):
            raise UnusableEntryError(f'"url" must start with http:// or https://, not {_shown(url)}')
        whole = f"{'http' if _HERE.fullmatch(match['host']) else 'https'}://{url}"
        self._notes.append(f'its "url" is read as {whole}')
        return whole

    def _headers(self) -> dict[str, str]:
        headers = self._texts("headers", self._get("headers"), ":")
        by_variable = self._get("envhttpheaders") or self._get("envheaders")
        for name, variable in self._texts("env_http_headers", by_variable, ":").items():
            headers[name] = f"${{{variable}}}"
        if isinstance(variable := self._get("bearertokenenvvar"), str):
            headers.setdefault("Authorization", f"Bearer ${{{variable}}}")
        if isinstance(bearer := self._get("bearertoken"), str):
            headers.setdefault("Authorization", f"Bearer {bearer}")
        return headers

    def _timeout(self) -> int | None:
        field, given = next(((f, v) for f in _TIMEOUTS if (v := self._get(f)) is not None), ("", None))
        if given is None:
            return None
        match = _DURATION.fullmatch(given) if isinstance(given, str) else None
        number, unit = (float(match[1]), (match[2] or "").lower()) if match else (given, "")
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < 10**12:
            self._notes.append(f"timeout {_shown(given)} is no time: the usual one holds")
            return None
        ms = number * _UNITS[unit] * _TIMEOUTS[field]
        in_seconds = not _OF_SECONDS.isdisjoint(self._named) and ms <= MOST_S
        if field == "timeout" and not unit and (ms < LEAST_MS or in_seconds):
            self._notes.append(f"timeout {_shown(given)} is read as {number:g} seconds")
            ms *= 1000
        return max(1, round(ms))

    def _names(self, fields: Iterable[str]) -> tuple[str, ...]:
        lists = [given for field in fields if isinstance(given := self._get(field), list)]
        return tuple(name.partition("(")[0] for names in lists for name in names if isinstance(name, str))

    def _trusted(self) -> bool | None:
        given = self._get("trusted")
        if given is not None and not isinstance(given, bool):
            self._notes.append(f'"trusted" must be true or false, not {_shown(given)}: it is not trusted')
            return None
        return given

    def _enabled(self) -> bool:
        enabled = True
        for field, starts in (("disabled", _FALSE), ("enabled", _TRUE), ("isactive", _TRUE), ("active", _TRUE)):
            given = self._get(field)
            if given is None:
                continue
            word = str(given).strip().casefold()
            enabled = enabled and word in starts
            if word not in _TRUE | _FALSE:
                self._notes.append(f'"{field}" must be true or false, not {_shown(given)}: it is not started')
        return enabled


def _unfolded(raw: dict[str, Any]) -> dict[str, Any]:
    flat = dict(raw)
    for key, value in raw.items():
        if not isinstance(value, dict):
            continue
        inner = {name: one for name, one in value.items() if one is not None}
        match _plain(key):
            case "command":
                flat[key] = inner.pop("path", inner.pop("command", None))
                flat = {**inner, **flat}
            case "transport" | "source":
                flat.pop(key)
                flat = {**inner, **flat}
            case "requestinit" | "requestoptions":
                flat.setdefault("headers", inner.get("headers"))
    return {key: value for key, value in flat.items() if value is not None}


def _sent(kind: str) -> str | None:
    return kind if kind in {"http", "sse"} else None


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise UnusableEntryError(f"a quotation mark is open in {_shown(text)}") from None


def _plain(name: str) -> str:
    return re.sub(r"[_\s-]", "", name).casefold()


def _kind(value: Any) -> str:
    return type(value).__name__


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return ascii(text if len(text) <= 60 else text[:59] + "…") if isinstance(value, str) else text[:60]


def entries_of(holder: Mapping[str, Any] | Iterable[Any]) -> list[tuple[str, Any]]:
    """Return the entries of an object, or of a list of objects with names."""
    if isinstance(holder, Mapping):
        return [*holder.items()]
    named = [(one.get("name", one.get("id")) if isinstance(one, dict) else None, one) for one in holder]
    return [(name if isinstance(name, str) else f"server-{at}", one) for at, (name, one) in enumerate(named, 1)]
