"""Decide whether the user's message is an instruction for exactly one call, and nothing else."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from packetgate.gate.provenance.actions import verbs_of
from packetgate.state.origins import ArgumentRole, OriginKind
from packetgate.state.routing import ToolCall
from packetgate.tools.text.argument_words import WORDS
from packetgate.tools.text.roles import is_id, role_of
from packetgate.tools.text.values import (
    find_words,
    fold_text,
    is_address,
    leaves,
    normalized_values_in,
    normalized_values_of,
)
from packetgate.tools.text.verbs import SURE_VERBS
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_in, words_of

_MAX_CHARS = 400
_VERB, _TARGET, _VALUE, _NOUN, _CONTENT, _UNKNOWN = "Vtvnc?"
_KINDS = {
    word: kind
    for kind, name in {
        "w": "courtesies",
        "d": "determiners",
        "o": "objects",
        "p": "prepositions",
        "i": "introducers",
        "m": "namings",
        "a": "repeats",
    }.items()
    for word in WORDS[name]
}
_CLOSED = STOP_WORDS | WORDS["clauses"] | _KINDS.keys()
"""Words that may join, limit or deny; no text of a call accounts for them."""
_VERB_STEMS = frozenset(map(stem_of, SURE_VERBS))
_PLACE = r"d{0,2}n*[tv]++n*"
_ORDER = re.compile(
    rf"w*V(?:c{{1,3}}|[tv]?(?:on*|{_PLACE}|d{{0,2}}n+|d{{1,2}}c{{1,3}}n*))"  # "send it", "send Ann the report"
    rf"(?:p(?:o|{_PLACE}|d{{0,2}}n+(?:c{{1,3}})?)"  # "to Ann", "on 3 May", "with subject Lunch"
    r"|m(?:[tv]|d?c{1,3})|id?c{1,3}|v)*"  # "called a.txt", "about the party"
    r"[aw]*"
)
"""The only form of an instruction, with a letter for the kind of each word."""
_QUOTES = {'"': '"', "'": "'", "\u2018": "\u2019", "\u201c": "\u201d"}
_PART = re.compile(r"\x00(.)|[^\s\x00]+")


class _Leaf(NamedTuple):
    """A text of a call's arguments."""

    text: str
    is_target: bool
    is_content: bool


def is_requested(call: ToolCall, words: str) -> bool:
    """Return whether the user's message is one clause that asks for a call, and nothing else.

    The clause begins with a verb of the action. It states the call's destinations and ids; it need not state a path, a
    default, or a field that the tool's server returned. Each value is stated at most once. Every other word
    is part of the tool's name or of a few consecutive words in a text of the call, or is a function word in its place.
    Any other text is not an instruction: a second clause, a condition, a question, a quotation.
    """
    text = fold_text(words)
    if len(text) > _MAX_CHARS or len(words.strip().splitlines()) != 1 or "\x00" in words:
        return False
    text = re.sub(r"[.!]$", "", text)
    text = re.sub(r",(?= please$)", "", text)
    texts = [
        (name, _Leaf(fold_text(str(leaf.value)), is_target, role is ArgumentRole.PAYLOAD))
        for name, value in call.params.items()
        for leaf in leaves(value, name)
        if not isinstance(leaf.value, bool) and leaf.value != ""
        for role in [call.role_of(name)]
        for is_target in [ArgumentRole.DESTINATION in (role, role_of(leaf.keys, {}, leaf.value)) or is_id(name)]
    ]
    masked, places = _with_values_masked(text, [leaf for _, leaf in texts])
    order = [places[leaf.text] for _, leaf in texts if leaf.is_target and leaf.text in places]
    if any(earlier > later for earlier, later in pairwise(order)):
        return False  # "move b to a" does not ask to move a to b
    for name, leaf in texts:
        origin = call.provenance.get(name)
        is_known = call.is_from_server(name) or (origin is not None and origin.kind is OriginKind.DEFAULT)
        may_be_unstated = is_known or ("/" in leaf.text and not is_address(leaf.text))
        if leaf.is_target and leaf.text not in places and not may_be_unstated:
            return False
    return _ORDER.fullmatch("".join(_kinds_in(masked, call, [leaf for _, leaf in texts]))) is not None


def _with_values_masked(text: str, values: list[_Leaf]) -> tuple[str, dict[str, int]]:
    """Replace the first mention of each value by a mark of its kind; return the text, and each value's place."""
    places: dict[str, int] = {}
    for leaf in sorted({*values}, key=lambda leaf: (not leaf.is_target, -len(leaf.text))):
        at = max(text.find(f"{start}{leaf.text}{end}") for start, end in _QUOTES.items()) + 1  # whole, in quotes
        if not at and leaf.is_content and not leaf.is_target:
            continue
        if not at:
            at = find_words(text, leaf.text) if leaf.is_target or not _joins(leaf.text) else -1
        end = at + len(leaf.text)
        if at < 0:
            stated = {value for alternatives in normalized_values_of(leaf.text) for value in alternatives}
            found = [(value, span) for value, span in normalized_values_in(text).items() if value in stated]
            spans = [span for value, span in found if value[0] != "number" or " " not in text[slice(*span)]]
            at, end = max(spans, key=lambda span: span[1] - span[0], default=(-1, 0))
        if at < 0:
            continue
        if text[at - 1 : at] in _QUOTES and text[end : end + 1] == _QUOTES[text[at - 1 : at]]:
            at, end = at - 1, end + 1
        if (text[at - 1 : at].strip() and at) or text[end : end + 1].strip():
            continue  # it is part of a longer word
        places[leaf.text] = at
        mark = f"\x00{_TARGET if leaf.is_target else _VALUE}"
        text = text[:at] + mark.ljust(end - at) + text[end:]
    return text, places


def _joins(text: str) -> bool:
    words = {*text.split()}
    return bool(words & (_CLOSED if len(words) > 1 else WORDS["clauses"]))


def _kinds_in(masked: str, call: ToolCall, values: list[_Leaf]) -> Iterator[str]:
    """Yield a letter for the kind of each word in a masked text."""
    action = call.tool_name.partition(".")[2]
    verbs = verbs_of(action)
    nouns = {*words_of(action), *verbs, *(word for name in call.params for word in words_of(name))} - _CLOSED
    known = {word for leaf in values if leaf.is_target for word in words_in(leaf.text)} - _CLOSED
    contents = [f" {' '.join(words_in(leaf.text))} " for leaf in values if not leaf.is_target]
    has_verb, run = False, ""
    for match in _PART.finditer(masked):
        word = match[0]
        content = f"{run or ' '}{word} "
        if match[1]:
            kind = match[1]
        elif not has_verb and word in verbs:
            kind, has_verb = _VERB, True
        elif word in _KINDS:
            kind = _KINDS[word]
        elif word in nouns or word.removesuffix("s") in nouns:
            kind = _NOUN
        elif word in known:
            kind = _TARGET
        elif (
            word.isalpha()
            and word not in _CLOSED
            and stem_of(word) not in _VERB_STEMS
            and word not in WORDS["times"]
            and (not word.endswith("ly") or word in WORDS["frequencies"])
            and any(content in text for text in contents)
        ):
            kind = _CONTENT
        else:
            kind = _UNKNOWN
        run = content if kind == _CONTENT else ""
        yield kind
