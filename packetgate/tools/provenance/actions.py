"""Decide whether a text asks for a tool's action."""

import re
from functools import lru_cache

from packetgate.state.origins import ArgumentRole, OriginKind
from packetgate.state.routing import ToolCall
from packetgate.tools.provenance.roles import is_id
from packetgate.tools.provenance.values import find_words, fold_text, is_address, leaves
from packetgate.tools.provenance.words import ACTIONS, WORDS
from packetgate.tools.text.words import stem_of, words_of

_VERBS = frozenset().union(*ACTIONS.values())
_WORD = re.compile(r"(?<![\w.@/:-])[a-z][a-z'-]*[a-z](?![\w@/]|\.\w)")
_REQUEST_WORDS = frozenset(
    "please then and to must should now you first also finally kindly immediately just could can will would need be or"
    " next instead always do before after assistant ai agent have".split()
)
"""Words after which a verb is an instruction. A verb at the start of a clause is also an instruction."""
_FIELD_NAME = re.compile(r"[\"']?\s?[:=]")
_CLAUSE_START = re.compile(r"(?:^|[.!?:;,\n\"'()\[\]{}<>*#|/-])\s*$")
DELEGATION = re.compile(
    r"\b(?:do|follow|perform|execute|complete|handle|finish|carry out|go through|work (?:through|off))\b[^.!?\n]{0,60}"
    r"\b(?:instructions?|tasks?|actions?|steps?|to-?dos?|orders?|directions?|what (?:it|they|he|she) says?)\b"
)
"""A request of the user to follow the instructions in a document."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE_ENDS = re.compile(
    r"[,;:]\s+|\s[-\u2013\u2014]+\s"
    r"|\s+(?=(?:but|except|never|not|without|and (?:do not|don['\u2019]?t|never|not))\b)"
)
_NEGATION = re.compile(
    r"^\W*(?:if|unless|suppose|in case)\b"
    r"|\b(?:never|not|no|nobody|nothing|none|without|avoid|stop \w+ing|refrain|instead of"
    r"|rather than|except|excluding|other than"
    r"|cannot|\w+n['\u2019]t|dont|nie(?:mals)?|nicht|kein\w*|ohne|ne|jamais|pas|sans|nunca|jam[a\u00e1]s|sin|mai|senza)\b"
)
_HARMLESS_NEGATION = re.compile(
    r"\b(?:do not|don['\u2019]?t|never) (?:forget|hesitate|worry)\b|\bno (?:problem|worries)\b"
)
_QUESTION = re.compile(r"\?\W*$|^\W*(?:how|what|when|where|which|who|whom|whose|why)\b")
_POLITE_REQUEST = re.compile(r"\b(?:can|could|will|would) (?:you|we)\b|\bplease\b")
_REPORTED_SPEECH = re.compile(
    r"\b(?!(?:i|we|that|which|it)\b)[\w.@-]+ (?:said|says|wrote|writes|asked|asks|told|wants|wanted|claims|suggests)\b"
)
_CONTINUATION = re.compile(
    r"\W*(?:and |also |plus )*(?:to|with|cc|bcc|copy|for|at|on|in|from|by|via|text|subject|body)\b"
)
"""The start of a clause that continues the instruction before it."""
_TOPIC = re.compile(r"\b(?:about|concerning|regarding|who|whom|whose|whether|what)\b.*", re.DOTALL)
"""The part of a clause that says what something is about."""


def mentions_action(action: str, words: str) -> bool:
    """Return whether a folded text contains a verb that asks for the action of a tool with this name."""
    return not _verbs_of(action)[1].isdisjoint(map(stem_of, _WORD.findall(words)))


def instruction_span(action: str, text: str) -> tuple[int, int] | None:
    """Return the start and end of the first verb in a folded text that instructs somebody to do the action."""
    own_stem, stems = _verbs_of(action)
    last = ""
    for match in _WORD.finditer(text):
        word = match[0]
        stem = stem_of(word)
        if stem in stems and word not in WORDS["nouns"] and not _FIELD_NAME.match(text, match.end()):
            before = text[max(0, match.start() - 4) : match.start()]
            if (stem == own_stem and len(own_stem) > 4) or last in _REQUEST_WORDS or _CLAUSE_START.search(before):
                return match.span()
        last = word
    return None


def _requested_clauses(action: str, words: str) -> str:
    """Return the clauses of the user's words that ask for the action, folded, each from its verb to its end.

    Questions, reported speech, negations and topics ("about ...") are left out.
    """
    requested = []
    for sentence in map(fold_text, _SENTENCE.split(words)):
        if _REPORTED_SPEECH.search(sentence) or (_QUESTION.search(sentence) and not _POLITE_REQUEST.search(sentence)):
            continue
        asks = False
        for clause in _CLAUSE_ENDS.split(sentence):
            if _NEGATION.search(_HARMLESS_NEGATION.sub(" ", clause)):
                continue
            instruction = _TOPIC.sub("", clause)
            span = instruction_span(action, instruction)
            asks = span is not None or (asks and _CONTINUATION.match(instruction) is not None)
            if asks:
                requested.append(instruction[span[0] if span else 0 :])
    return "\n".join(requested)


def is_requested(call: ToolCall, words: str) -> bool:
    """Return whether the user's words ask for a call: for its action, and with its destinations and ids.

    The clause that asks need not state a path, a default, or a field that the tool's server returned. If another clause
    mentions such a value, the clause that asks must state it too.
    """
    requested, all_words = _requested_clauses(call.tool_name.partition(".")[2], words), fold_text(words)
    if not requested:
        return False
    for name, value in call.params.items():
        if call.role_of(name) is not ArgumentRole.DESTINATION and not is_id(name):
            continue
        origin = call.provenance.get(name)
        is_known = call.is_from_server(name) or (origin is not None and origin.kind is OriginKind.DEFAULT)
        for text in (fold_text(str(leaf.value)) for leaf in leaves(value)):
            may_be_omitted = is_known or ("/" in text and not is_address(text))
            if find_words(requested, text) < 0 and (not may_be_omitted or find_words(all_words, text) >= 0):
                return False
    return True


@lru_cache(maxsize=4_096)
def _verbs_of(action: str) -> tuple[str, frozenset[str]]:
    """Return the stem of the verb in a tool's name, and the stems of all verbs that ask for the same action."""
    words = words_of(action)
    own = next((word for word in words if word in _VERBS), words[0] if words else "")
    return stem_of(own), frozenset(map(stem_of, {own, *ACTIONS.get(own, ())} - {""}))
