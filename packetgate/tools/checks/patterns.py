"""Regular expressions of JSON Schema, which are JavaScript's, as the validator here takes them."""

import re
from functools import lru_cache

from jsonschema_rs import FancyRegexOptions, validator_for

BACKTRACK_LIMIT = 100_000
"""Steps a schema's pattern may take on a value: a hostile one ends there, and the value does not pass."""
PATTERN_OPTIONS = FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)

_LITERAL = re.compile(r"/(?P<body>\^.*|.*\$)/(?P<flags>[dgimsuvy]*)", re.DOTALL)
"""A whole JavaScript literal: with its slashes, it could fit nothing."""
_FLAGGED = re.compile(r"/.+/[gimsuy]+", re.DOTALL)
_OPENS = frozenset({"[", "[^"})
_CLOSES = frozenset({"]", "[]", "[^]"})
"""Of a set of characters; within one, `[` is a character."""
_TOKEN = re.compile(
    r"\\u\{(?P<brace>[0-9a-fA-F]{1,6})\}"
    r"|\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\u(?P<four>[0-9a-fA-F]{4})|\\x(?P<two>[0-9a-fA-F]{2})|\\c(?P<control>[A-Za-z])|\\(?P<zero>0)(?![0-9])"
    r"|\\k<(?P<back>\w+)>|\(\?P=(?P<python>\w+)\)|\(\?P?<(?P<group>[A-Za-z_$]\w*)>"
    r"|(?P<set>\\[dDwWsS]|\\[pP](?:\{[^}]*\}|\w))|\\.|\[\^?\]|\[\^?|\{\d+(?:,\d*)?\}|\{,\d+\}|.",
    re.DOTALL,
)


@lru_cache(maxsize=4096)
def translated(pattern: str) -> str | None:
    """Return a pattern as the validator takes it, unchanged where it does already; None where it cannot be used.

    A pattern that languages read differently is not used.
    """
    if literal := _LITERAL.fullmatch(pattern):
        flags = "".join(flag for flag in literal["flags"] if flag in "ims")
        pattern = f"(?{flags}){literal['body']}" if flags else literal["body"]
    elif _FLAGGED.fullmatch(pattern):
        return None
    written = _Translation(pattern).written()
    return written if written is not None and _compiles(written) else None


def _compiles(pattern: str) -> bool:
    try:
        validator_for({"pattern": pattern}, pattern_options=PATTERN_OPTIONS)
    except ValueError:
        return False
    return True


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._tokens = [*_TOKEN.finditer(pattern)]
        groups = [match["group"] for match in self._tokens if match["group"] or match[0] == "("]
        opened = [at for at, match in enumerate(self._tokens) if match["group"] or match[0] == "("]
        plain = [name for name, at in zip(groups, opened, strict=True) if name or self._text(at + 1) != "?"]
        self._numbers = {name: number for number, name in enumerate(plain, 1) if name}
        self._refers = any(match["back"] or match["python"] for match in self._tokens)

    def _text(self, at: int) -> str:
        return self._tokens[at][0] if at < len(self._tokens) else ""

    def written(self) -> str | None:
        out: list[str] = []
        in_class = False
        for at, match in enumerate(self._tokens):
            part = match[0]
            following = self._text(at + 1)
            if in_class and (
                (part in _OPENS and following in {":", ".", "="}) or (part in {"&", "~", "-"} and following == part)
            ):
                return None  # a named class of POSIX, an operation on sets, or just letters
            out.append(self._in_class(at, match) if in_class else self._outside(match))
            in_class = part not in _CLOSES if in_class else part in _OPENS
        return "".join(out)

    def _in_class(self, at: int, match: re.Match[str]) -> str:
        if match[0].startswith("["):
            return "".join(rf"\{char}" if char == "[" else char for char in match[0])
        if match[0] == r"\b":
            return r"\x08"
        beside = self._tokens[at - 1 : at] + self._tokens[at + 1 : at + 2]
        if match[0] == "-" and any(one["set"] for one in beside):
            return r"\-"
        return _character(match) or match[0]

    def _outside(self, match: re.Match[str]) -> str:
        part = match[0]
        if name := match["back"] or match["python"]:
            return rf"(?:\{self._numbers[name]})" if name in self._numbers else part
        if match["group"] and self._refers:
            return "("
        other = {"[]": "(?!)", "[^]": r"[\s\S]", "{": r"\{", r"\A": "^", r"\Z": "$", r"\z": "$"}
        return other.get(part) or _character(match) or part


def _character(match: re.Match[str]) -> str:
    if match["high"]:
        code = 0x10000 + ((int(match["high"], 16) - 0xD800) << 10) + int(match["low"], 16) - 0xDC00
    elif digits := match["brace"]:
        code = int(digits, 16)
    elif match["control"]:
        code = ord(match["control"]) % 32
    elif match["zero"]:
        code = 0
    else:
        return ""
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return match[0]
    char = chr(code)
    if code < 128:
        return char if char.isalnum() else f"\\x{code:02x}"
    return char if char.isprintable() else f"\\u{code:04x}" if code < 0x10000 else match[0]
