"""Decide whether words ask for what a tool does."""

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
_ASKING = frozenset(
    "please then and to must should now you first also finally kindly immediately just could can will would need be or"
    " next instead always do before after assistant ai agent have".split()
)
"""Words after which a verb is an instruction. A verb at the start of a clause is an instruction too."""
_FIELD_NAME = re.compile(r"[\"']?\s?[:=]")
_CLAUSE_START = re.compile(r"(?:^|[.!?:;,\n\"'()\[\]{}<>*#|/-])\s*$")
DELEGATES = re.compile(
    r"\b(?:do|follow|perform|execute|complete|handle|finish|carry out|go through|work (?:through|off))\b[^.!?\n]{0,60}"
    r"\b(?:instructions?|tasks?|actions?|steps?|to-?dos?|orders?|directions?|what (?:it|they|he|she) says?)\b"
)
"""Words of the user that ask to follow the instructions of a document."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE_ENDS = re.compile(
    r"[,;:]\s+|\s[-\u2013\u2014]+\s"
    r"|\s+(?=(?:but|except|never|not|without|and (?:do not|don['\u2019]?t|never|not))\b)"
)
_FORBIDS = re.compile(
    r"^\W*(?:if|unless|suppose|in case)\b"
    r"|\b(?:never|not|no|nobody|nothing|none|without|avoid|stop \w+ing|refrain|instead of"
    r"|rather than|except|excluding|other than"
    r"|cannot|\w+n['\u2019]t|dont|nie(?:mals)?|nicht|kein\w*|ohne|ne|jamais|pas|sans|nunca|jam[a\u00e1]s|sin|mai|senza)\b"
)
_FORBIDS_NOTHING = re.compile(
    r"\b(?:do not|don['\u2019]?t|never) (?:forget|hesitate|worry)\b|\bno (?:problem|worries)\b"
)
_QUESTION = re.compile(r"\?\W*$|^\W*(?:how|what|when|where|which|who|whom|whose|why)\b")
_REQUEST = re.compile(r"\b(?:can|could|will|would) (?:you|we)\b|\bplease\b")
_REPORTS = re.compile(
    r"\b(?!(?:i|we|that|which|it)\b)[\w.@-]+ (?:said|says|wrote|writes|asked|asks|told|wants|wanted|claims|suggests)\b"
)
_GOES_ON = re.compile(r"\W*(?:and |also |plus )*(?:to|with|cc|bcc|copy|for|at|on|in|from|by|via|text|subject|body)\b")
"""The start of a clause that belongs to the instruction before it."""
_TOPIC = re.compile(r"\b(?:about|concerning|regarding|who|whom|whose|whether|what)\b.*", re.DOTALL)
"""The part of a clause that says what something is about."""


def mentions_action(action: str, words: str) -> bool:
    """Return whether folded words mention the action of a tool with this name."""
    return not _verbs_of(action)[1].isdisjoint(map(stem_of, _WORD.findall(words)))


def instruction_span(action: str, passage: str) -> tuple[int, int] | None:
    """Return the place of the first verb in a folded passage that instructs somebody to do the action."""
    own, stems = _verbs_of(action)
    last = ""
    for match in _WORD.finditer(passage):
        word = match[0]
        stem = stem_of(word)
        if stem in stems and word not in WORDS["nouns"] and not _FIELD_NAME.match(passage, match.end()):
            before = passage[max(0, match.start() - 4) : match.start()]
            if (stem == own and len(own) > 4) or last in _ASKING or _CLAUSE_START.search(before):
                return match.span()
        last = word
    return None


def _requested_clauses(action: str, words: str) -> str:
    """Return the clauses of the user's words, folded, that ask for the action, from their verb on.

    Questions, reports, negations and topics are left out.
    """
    requested = []
    for sentence in map(fold_text, _SENTENCE.split(words)):
        if _REPORTS.search(sentence) or (_QUESTION.search(sentence) and not _REQUEST.search(sentence)):
            continue
        is_ordered = False
        for clause in _CLAUSE_ENDS.split(sentence):
            if _FORBIDS.search(_FORBIDS_NOTHING.sub(" ", clause)):
                continue
            wanted = _TOPIC.sub("", clause)
            span = instruction_span(action, wanted)
            is_ordered = span is not None or (is_ordered and _GOES_ON.match(wanted) is not None)
            if is_ordered:
                requested.append(wanted[span[0] if span else 0 :])
    return "\n".join(requested)


def is_requested(call: ToolCall, words: str) -> bool:
    """Return whether the user's words ask for a call: for its action, its destinations and its ids.

    The user's words need not state a path, a default, or a field of the tool's own server, unless they mention it
    elsewhere.
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
    """Return the stem of a tool's verb, and the stems of all verbs that ask for the same."""
    words = words_of(action)
    own = next((word for word in words if word in _VERBS), words[0] if words else "")
    return stem_of(own), frozenset(map(stem_of, {own, *ACTIONS.get(own, ())} - {""}))
