"""Patterns of argument values: what a policy line says of them, and what a value must be to fit.

`*` stands for anything within one part of a path, `**` for anything at all, a backslash before a character for that
character. A value is compared as its JSON if it is no text. What allows is read to the letter; what denies is read as
the system may read a value: with its `..` and `%2e` resolved, and whatever its case.
"""

import json
import re
import unicodedata
from datetime import datetime
from functools import lru_cache
from posixpath import normpath
from typing import Any
from urllib.parse import unquote

ANYTHING = "**"
_WILD = re.compile(r"\\.|\*\*|\*|[^*\\]+|\\", re.DOTALL)
_DECODINGS = 3
"""How often an encoded value is decoded: programs do it more than once by mistake, not without end."""


def exactly(value: Any) -> str:
    """Return the pattern that only this value fits."""
    return re.sub(r"[*\\]", r"\\\g<0>", text_of(value))


def fits(value: Any, pattern: str) -> bool:
    """Whether a value fits a pattern to the letter; behind a `*` no value climbs out of its folder."""
    text = text_of(value)
    wild = exactly(value) != pattern and pattern != ANYTHING
    return _compiled(pattern).fullmatch(text) is not None and not (wild and _climbs(text))


def may_fit(value: Any, pattern: str) -> bool:
    """Whether a value, or what a system may make of it, fits a pattern."""
    wanted = _compiled(unicodedata.normalize("NFKC", pattern).casefold())
    return any(wanted.fullmatch(form) for form in _forms(text_of(value)))


def text_of(value: Any) -> str:
    """Return a value as patterns see it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def is_moment(value: Any) -> bool:
    """Whether a value is a date, with or without a time, and nothing else."""
    if not isinstance(value, str) or "-" not in value:
        return False
    try:
        return bool(datetime.fromisoformat(value.strip()))
    except ValueError:
        return False


def is_number(value: Any) -> bool:
    """Whether a value is a number, and neither a flag nor a text."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _climbs(text: str) -> bool:
    return any({".", ".."} & {*re.split(r"[/\\]", form)} for form in _decoded(text)) or not text.isprintable()


def _forms(text: str) -> set[str]:
    decoded = {unicodedata.normalize("NFKC", form).casefold() for form in _decoded(text)}
    resolved = {normpath(form.replace("\\", "/")) for form in decoded if form}
    return decoded | resolved | {form.lstrip("/") for form in resolved}


def _decoded(text: str) -> list[str]:
    forms = [text]
    while len(forms) <= _DECODINGS and (more := unquote(forms[-1])) != forms[-1]:
        forms.append(more)
    return forms


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(_regex(part) for part in _WILD.findall(pattern)), re.DOTALL)


def _regex(part: str) -> str:
    wild = {"*": "[^/]*", "**": ".*"}
    literal = part[1:] if part.startswith("\\") and len(part) > 1 else part
    return wild.get(part) or re.escape(literal)
