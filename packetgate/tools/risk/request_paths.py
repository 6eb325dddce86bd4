"""Decide whether a path or an address names a request that changes something."""

import re
from itertools import pairwise
from urllib.parse import unquote

from packetgate.tools.risk.parameter_kinds import word_lists
from packetgate.tools.text.verbs import POSSIBLE_CHANGES, SURE_CHANGES, verb_kind
from packetgate.tools.text.words import words_of

_WORDS = word_lists("paths")
_SEGMENTS = re.compile(r"[/;:]+")
_VERSION = re.compile(r"v\d+")
_DATED = re.compile(r"(?:19|20)\d\d|v?\d+(?:\.\d+)+")
"""A year, or the version of something that is not the interface."""
_METHOD = re.compile(r"[a-z][A-Z]")  # as in `cancelItem`
_KEY_DIGITS = 3
"""Number of digits in a segment that looks like a key."""


def names_change(text: str, words: frozenset[str]) -> bool:
    """Return whether a path or an address names a change; `words` are those of the value's names.

    `/users/1/delete` does, but not `src/delete.py`, nor a page such as `https://site.example/docs/delete`.
    """
    address, _, query = text.strip().partition("#")[0].partition("?")
    path, _, rest = unquote(address).partition("://")
    host, _, path = rest.partition("/") if rest else ("", "", path)
    segments = [segment for segment in _SEGMENTS.split(path) if segment]
    ends = [segment.lstrip("_") for segment in segments if segment.startswith("_")]  # `_delete_by_query`
    firsts = [first.removeprefix("force") for end in ends for first in words_of(end)[:1]]
    if any(verb_kind(first) in SURE_CHANGES or first == "bulk" for first in firsts):
        return True
    names, labels = [segment.casefold() for segment in segments], host.casefold().split(".")
    is_request = bool(rest) or (path.startswith(("/", "_")) and not words & _WORDS["files"])
    if not is_request or not _WORDS["pages"].isdisjoint((*labels, *names)):
        return False
    is_interface = labels[0] == "api" or any(map(_is_of_interface, names)) or bool(ends)
    pairs = pairwise((*labels, *names)) if rest or is_interface else ()
    if any(name in _WORDS["triggers"] and not key.isdigit() for name, key in pairs):
        return True  # `/webhook/deploy`, but not the settings of a hook, `/hooks/12`
    is_site = len(labels) > 1 and labels[-1].isalpha() and labels[-1] not in _WORDS["own_hosts"]
    may_end = bool(query) or len(segments) == 1 or not is_site  # on a site, `/package/remove` is a page
    return any(
        _is_change(segment, is_last=at == len(segments), may_end=may_end, is_interface=is_interface)
        for at, segment in enumerate(segments, 1)
    )


def _is_of_interface(name: str) -> bool:
    is_key = (name.isdigit() or sum(char.isdigit() for char in name) >= _KEY_DIGITS) and not _DATED.fullmatch(name)
    return is_key or name in _WORDS["interfaces"] or bool(_VERSION.fullmatch(name))


def _is_change(segment: str, *, is_last: bool, may_end: bool, is_interface: bool) -> bool:
    stem, _, ending = segment.partition(".")
    known, is_script = words_of(stem), ending.casefold() in _WORDS["scripts"]
    known = known[known[:1] == ["do"] :]  # `doDelete`
    if ending and not is_script:  # perhaps a method, such as `chat.postMessage`
        kind = verb_kind(next(iter(words_of(ending)), ""))
        return is_interface and is_last and kind in SURE_CHANGES | POSSIBLE_CHANGES
    if not known:
        return False
    if is_last and may_end and len(known) == 1 and known[0] in _WORDS["endings"]:
        return True
    is_title = "-" in stem and len(known) > 2  # `delete-an-account`
    is_method = is_last and _METHOD.search(stem) is not None
    may_be_request = is_script or is_method or (is_interface and not is_title and (is_last or len(known) == 1))
    return may_be_request and verb_kind(known[0]) in SURE_CHANGES
