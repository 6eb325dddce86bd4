"""Decide whether a path or an address names a request that changes something."""

import re
from urllib.parse import unquote

from packetgate.tools.risk.parameter_kinds import word_lists
from packetgate.tools.text.verbs import POSSIBLE_CHANGES, SURE_CHANGES, verb_kind
from packetgate.tools.text.words import words_of

_WORDS = word_lists("paths")
_SEGMENTS = re.compile(r"[/;:]+")
_VERSION = re.compile(r"v\d+")
_DATED = re.compile(r"(?:19|20)\d\d|v?\d+(?:\.\d+)+")
"""A year, or the version of something that is not the interface."""
_KEY_DIGITS = 3
"""Number of digits in a segment that looks like a key."""


def names_change(text: str, words: frozenset[str]) -> bool:
    """Return whether a path or an address names a request that changes something; `words` are of the value's names.

    `/users/1/delete` does, but not `src/delete.py`, nor a page such as `https://site.example/docs/delete`.
    """
    path, _, rest = unquote(text.strip().partition("?")[0].partition("#")[0]).partition("://")
    host, _, path = rest.partition("/") if rest else ("", "", path)
    segments = [segment for segment in _SEGMENTS.split(path) if segment]
    ends = [segment.lstrip("_") for segment in segments if segment.startswith("_")]  # `_delete_by_query`
    if any(verb_kind(first) in SURE_CHANGES or first == "bulk" for end in ends for first in words_of(end)[:1]):
        return True
    names = [segment.casefold() for segment in segments]
    is_request = bool(rest) or (path.startswith("/") and not words & _WORDS["files"])
    if not is_request or not _WORDS["pages"].isdisjoint((*host.casefold().split("."), *names)):
        return False
    is_interface = host.casefold().startswith("api.") or any(map(_is_of_interface, names))
    return any(
        _is_change(segment, is_last=at == len(segments), is_interface=is_interface)
        for at, segment in enumerate(segments, 1)
    )


def _is_of_interface(name: str) -> bool:
    is_key = (name.isdigit() or sum(char.isdigit() for char in name) >= _KEY_DIGITS) and not _DATED.fullmatch(name)
    return is_key or name in _WORDS["interfaces"] or bool(_VERSION.fullmatch(name))


def _is_change(segment: str, *, is_last: bool, is_interface: bool) -> bool:
    stem, _, ending = segment.partition(".")
    known, is_script = words_of(stem), ending.casefold() in _WORDS["scripts"]
    if ending and not is_script:  # perhaps a method, such as `chat.postMessage`
        kind = verb_kind(next(iter(words_of(ending)), ""))
        return is_interface and is_last and kind in SURE_CHANGES | POSSIBLE_CHANGES
    if not known:
        return False
    if is_last and len(known) == 1 and known[0] in _WORDS["endings"]:
        return True
    is_title = "-" in stem and len(known) > 2  # `delete-an-account`
    may_be_request = is_script or (is_interface and not is_title and (is_last or len(known) == 1))
    return may_be_request and verb_kind(known[0]) in SURE_CHANGES
