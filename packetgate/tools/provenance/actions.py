"""What kind of action a tool is for, and whether words ask for it."""

import re
from functools import lru_cache

from packetgate.state.origins import ArgumentRole, OriginKind
from packetgate.state.routing import ToolCall
from packetgate.tools.provenance.roles import is_id
from packetgate.tools.provenance.values import find, folded, is_address, leaves
from packetgate.tools.provenance.words import ACTIONS, NOUNS
from packetgate.tools.text.words import stem_of, words_of

_ALL = frozenset(verb for family in ACTIONS for verb in family)
_WORD = re.compile(r"(?<![\w.@/:-])[a-z][a-z'-]*[a-z](?![\w@/]|\.\w)")
_ASKING = frozenset(
    "please then and to must should now you first also finally kindly immediately just could can will would need be or"
    " next instead always do before after assistant ai agent have".split()
)
"""Words before a verb that make it an instruction, beside the beginning of a clause."""
_LABEL = re.compile(r"[\"']?\s?[:=]")
"""What makes the word before it the name of a field."""
_CLAUSE = re.compile(r"(?:^|[.!?:;,\n\"'()\[\]{}<>*#|/-])\s*$")


@lru_cache(maxsize=4_096)
def verbs_of(name: str) -> frozenset[str]:
    """Return the stems of the verbs that ask for what a tool of this name does, its own first."""
    words = words_of(name)
    own = next((word for word in words if word in _ALL), words[0] if words else "")
    near = {verb for family in ACTIONS if family[0] == own for verb in family}
    return frozenset(map(stem_of, {own, *near})) if own else frozenset()


_DELEGATES = re.compile(
    r"\b(?:do|follow|perform|execute|complete|handle|finish|carry out|go through|work (?:through|off))\b[^.!?\n]{0,60}"
    r"\b(?:instructions?|tasks?|actions?|steps?|to-?dos?|orders?|directions?|what (?:it|they|he|she) says?)\b"
)


def delegates(words: str) -> bool:
    """Whether the user's words, folded, say to do what is written elsewhere."""
    return _DELEGATES.search(words) is not None


def own_stem(name: str) -> str:
    """Return the stem of a tool's own verb."""
    words = words_of(name)
    own = next((word for word in words if word in _ALL), words[0] if words else "")
    return stem_of(own)


def calls_for(name: str, words: str) -> bool:
    """Whether the user's words, folded, speak of such an action at all."""
    stems = {stem_of(word) for word in _WORD.findall(words)}
    return bool(verbs_of(name) & stems)


def asks_for(name: str, passage: str) -> bool:
    """Whether a passage, folded, instructs somebody to do what a tool of this name does."""
    return commanded(name, passage) is not None


def commanded(name: str, passage: str) -> tuple[int, int] | None:
    """Return where a passage, folded, instructs somebody to do what a tool of this name does."""
    verbs, own = verbs_of(name), own_stem(name)
    last = ""
    for found in _WORD.finditer(passage):
        stem = stem_of(found[0])
        before = passage[max(0, found.start() - 4) : found.start()]
        leads = (stem == own and len(own) > 4) or last in _ASKING or _CLAUSE.search(before)
        orders = stem in verbs and found[0] not in NOUNS and leads
        if orders and not _LABEL.match(passage, found.end()):
            return found.span()
        last = found[0]
    return None


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
"""What makes a request of a question."""
_REPORTS = re.compile(
    r"\b(?!(?:i|we|that|which|it)\b)[\w.@-]+ (?:said|says|wrote|writes|asked|asks|told|wants|wanted|claims|suggests)\b"
)
"""What somebody else says."""
_GOES_ON = re.compile(r"\W*(?:and |also |plus )*(?:to|with|cc|bcc|copy|for|at|on|in|from|by|via|text|subject|body)\b")
"""What begins a clause that says more of what the one before it orders."""
_TOPIC = re.compile(r"\b(?:about|concerning|regarding|who|whom|whose|whether|what)\b.*", re.DOTALL)
"""From here on a clause says what something is about."""


def asked_for(action: str, words: str) -> str:
    """Return the user's words, folded, in which they ask for what a tool of this name does; empty where they do not.

    They are the clauses that order it, from their verb on, and those that go on from one; not of mere questions or
    reports, not what forbids or excludes something, and not what it is to be about.
    """
    kept = []
    for sentence in map(folded, _SENTENCE.split(words)):
        if _REPORTS.search(sentence) or (_QUESTION.search(sentence) and not _REQUEST.search(sentence)):
            continue
        clauses = [_TOPIC.sub("", one) for one in _CLAUSE_ENDS.split(sentence) if not _forbids(one)]
        ordered = False
        for clause in clauses:
            order = commanded(action, clause)
            ordered = order is not None or (ordered and _GOES_ON.match(clause) is not None)
            kept += [clause[order[0] if order else 0 :]] if ordered else []
    return "\n".join(kept)


def is_requested(call: ToolCall, words: str) -> bool:
    """Whether the user's words ask for a call: for what its tool does, and for each place and thing that it is about.

    A place may go unsaid that is a path, a default of the tool, or a field that the tool's own server returned; never
    one that the words speak of and do not ask for.
    """
    asked, said = asked_for(call.tool_name.partition(".")[2], words), folded(words)
    if not asked:
        return False
    for name, value in call.params.items():
        if call.role_of(name) is not ArgumentRole.DESTINATION and not is_id(name):
            continue
        origin, texts = call.provenance.get(name), [folded(str(leaf.value)) for leaf in leaves(value)]
        may_go_unsaid = call.is_from_server(name) or (origin is not None and origin.kind is OriginKind.DEFAULT)
        for text in texts:
            is_free = may_go_unsaid or ("/" in text and not is_address(text))
            if find(asked, text) < 0 and (not is_free or find(said, text) >= 0):
                return False
    return True


def _forbids(clause: str) -> bool:
    return _FORBIDS.search(_FORBIDS_NOTHING.sub(" ", clause)) is not None
