"""Find the words of a request that a call leaves out: those that neither its tool nor its arguments account for."""

import re
from collections.abc import Iterable, Iterator

from packetgate.gate.replies import POLITE_WORDS, parse_words
from packetgate.reflex.reading import senses_of
from packetgate.reflex.values.filling import PATH_WORDS, Filling, takes_path
from packetgate.reflex.values.mentions import EDGES
from packetgate.reflex.values.tokens import Token, tokenize
from packetgate.state.routing import Risk
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.named_paths import words_for_path
from packetgate.tools.text.reading import is_question, is_small_talk, unquoted_words
from packetgate.tools.text.values import leaves
from packetgate.tools.text.verbs import KNOWN_VERBS, SENSES
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_in, words_of

_ALL = frozenset("all any each every everything whole".split())
"""Words that a read satisfies without an argument: it returns everything."""
_LIMITS = _ALL | frozenset(
    "both except first last least less many more most much never next no none not nothing once only previous same twice"
    " until without".split()
)
"""Words that limit or negate."""
_EMPTY = (STOP_WORDS | EDGES | POLITE_WORDS) - _LIMITS
_RETRIEVAL = SENSES["read"] | SENSES["list"] | {"fetch", "give", "retrieve", "return"}
_CLAUSE = re.compile(r"[^,.!?;\n]+")
_VALUES = frozenset("quoted code url email path number date time".split())


def words_left_out(text: str, spec: ToolSpec, fillings: Iterable[Filling]) -> list[str]:
    """Return the words of a part of a request that carry meaning and that no call of these accounts for, in order."""
    fillings = [*fillings]
    filled = {name: value for filling in fillings for name, value in filling.params.items()}
    spans = [
        (one.start, one.end)
        for filling in fillings
        for one in filling.arguments
        if one.state == "filled" and one.text.lower() not in _LIMITS
    ]
    filled = spec.resolved(filled)
    spans += [*_named_paths(text, filled.values()), *_asides(text)]
    reads = spec.apparent_risk is Risk.READ
    of_tool = _stems([spec.name, spec.full.partition(". ")[0]])
    of_values = (PATH_WORDS if takes_path(spec) else frozenset()) | _stems(
        [*filled]
        + [str(spec.parameters.get(name, {}).get("description", "")) for name in filled]
        + [str(leaf.value) for name, value in filled.items() for leaf in leaves(value, name)]
    )
    senses = {*senses_of(words_of(spec.upstream_name)), *words_of(spec.upstream_name)}
    asks_for_text = is_question(text) or not _RETRIEVAL.isdisjoint(unquoted_words(text))
    shows_file = asks_for_text and "read" in senses and len(filled) == 1
    shows_file = shows_file and spec.paths_exist is not None and spec.paths_exist(filled)

    def is_left_out(token: Token) -> bool:
        word = token.text.lower()
        if any(start <= token.start < end for start, end in spans) or word in _EMPTY or not any(map(str.isalnum, word)):
            return False
        stems = {*map(stem_of, words_in(word))}
        if stems & of_values or (reads and word in _ALL | _RETRIEVAL):
            return False
        if word == "many":
            return "count" not in senses
        if stems <= of_tool or senses & {word, *senses_of([word])}:
            return word in _LIMITS
        return not shows_file or word in _LIMITS or word in KNOWN_VERBS or token.kind in _VALUES

    return [token.text for token in tokenize(text) if is_left_out(token)]


def _named_paths(text: str, values: Iterable[object]) -> Iterator[tuple[int, int]]:
    for value in values:
        words = words_for_path(value, text) if isinstance(value, str) else ""
        if words:
            start = text.find(words)
            yield start, start + len(words)


def _asides(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of greetings and verdicts, such as `never mind`."""
    for clause in _CLAUSE.finditer(text):
        if is_small_talk(clause[0]) or parse_words(clause[0]).outcome is not ApprovalOutcome.ANSWERED:
            yield clause.span()


def _stems(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(stem_of(word) for text in texts for word in words_in(text))
