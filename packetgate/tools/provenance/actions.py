"""Decide whether a text asks for a tool's action."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Set
from functools import cached_property, lru_cache

from packetgate.state.origins import ArgumentRole, OriginKind
from packetgate.state.routing import ToolCall
from packetgate.tools.provenance.roles import is_id
from packetgate.tools.provenance.values import find_words, fold_text, is_address, leaves
from packetgate.tools.provenance.words import ACTIONS, WORDS
from packetgate.tools.text.verbs import EXECUTE_VERBS, READ_VERBS, WRITE_VERBS
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_in, words_of

_VERBS = frozenset().union(*ACTIONS.values())
_IMPERATIVES = _VERBS | READ_VERBS | WRITE_VERBS | EXECUTE_VERBS
_COMMAND = re.compile(r"(?<!\S)/([a-z]+)(?!\S)")
_WORD = re.compile(r"(?<![\w.@/:-])[a-z](?:[a-z'-]*[a-z])?(?![\w@/]|\.\w)")
_REQUEST_WORDS = frozenset(
    "please then and to must should now you first also finally kindly immediately just could can will would need be or"
    " next instead always do before after assistant ai agent have".split()
)
"""Words after which a verb is an instruction. A verb at the start of a clause is also an instruction."""
_FIELD_NAME = re.compile(r"[\"']?\s?[:=]")
_VERB_USE = re.compile(r"\s+(?!(?:and|or|in|from|of|for|on|at|by|that|which|with|i|you|we|is|are|was|were)\b)[\w@]")
"""What follows a word that may be a noun where it is a verb."""
_CLAUSE_START = re.compile(r"(?:^|[.!?:;,\n\"'()\[\]{}<>*#|/-])\s*$")
DELEGATION = re.compile(
    r"\b(?:do|follow|perform|execute|complete|handle|finish|carry out|go through|work (?:through|off))\b"
    r"(?! (?:all )?(?:of )?(?:the |these )?following\b)[^.!?\n]{0,60}"
    r"\b(?:instructions?|tasks?|actions?|steps?|to-?dos?|orders?|directions?|what (?:it|they|he|she) says?)\b(?!\s*:)"
)
"""A request of the user to follow the instructions in a document."""
_RUN = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?\u2026])\s+|\n+")
_QUOTED = re.compile(
    r"```.*?```|^\s*>.*$|\"[^\"\n]*\"|\u201c[^\u201d]*\u201d|\u201e[^\u201c]*\u201c|\u00ab[^\u00bb]*\u00bb|`[^`\n]*`"
    r"|(?<!\w)['\u2018][^'\u2019\n]*['\u2019](?!\w)",
    re.DOTALL | re.MULTILINE,
)
_CLAUSE_ENDS = re.compile(
    r"([,;:])\s+|\s[-\u2013\u2014]+\s"
    r"|\s+(?=(?:but|except|never|not|without|and (?:do not|don['\u2019]?t|never|not))\b)"
)
_NEGATION = re.compile(
    r"\b(?:never|not|no|nope|nobody|nothing|none|without|avoid|stop \w+ing|refrain|instead of"
    r"|rather than|except|excluding|other than|neither|nor|hardly|zero|fewer|less|only|cannot|\w+n['\u2019]t|dont"
    r"|nie(?:mals)?|nicht|kein\w*|ohne|ne|jamais|pas|sans|nunca|jam[a\u00e1]s|sin|mai|senza)\b"
)
_HARMLESS_NEGATION = re.compile(
    r"\b(?:do not|don['\u2019]?t|never) (?:forget|hesitate|worry)\b|\bno (?:problem|worries)\b"
)
_RETRACTION = re.compile(
    r"^\W*(?:(?:oh|hmm|ah|sorry|actually|but) )*(?:"
    r"(?:no|nope|wait|never ?mind|(?:just )?(?:kidding|joking)|joke)\b(?!.*[@\d])"
    r"|(?:do not|don['\u2019]t|dont|not|cancel|undo|forget|scratch|ignore|stop)(?: (?:it|that|this|everything))?\W*$)"
)
"""A clause or sentence that takes back what the user asked for, and names nobody."""
_REPORT = re.compile(r"\b(?:said|says|wrote|writes|told|claims|claimed)\b")
_CONDITION = re.compile(
    r"\b(?:if|unless|until|till|when(?:ever)?|once|in case|provided|assuming|suppose|as soon as|otherwise|maybe|perhaps"
    r"|(?:before|after)(?!\s+(?:\d|noon|lunch|the\b)))\b"
)
_OPENING = re.compile(
    r"(?:[\W_]|\b(?:please|pls|now|then|also|and|ok|okay|so|next|finally|first|kindly|just|again|thanks|thank you"
    r"|(?:hi|hey|hello|dear)(?: (?!(?:if|no|not|never)\b)\w+(?=,|$))?|(?:can|could|will) (?:you|we)|would you please"
    r"|go ahead|i (?:want|need|would like) (?:you )?to|i['\u2019]d like (?:you )?to|let(?:['\u2019]s| us)"
    r"|help me(?: to)?|(?:make sure|remember|don['\u2019]t forget|do not forget)(?: to)?)\b)*"
)
"""What may stand before the verb of an order. Before any other words, the verb is no order."""
_NEXT_ORDER = re.compile(r"\s+(?:and|then|&|plus)\s+")
_STATEMENT = re.compile(r"\b(?:am|is|are|was|were|has|had|would|should|might|may|must|will|cannot|can)\b")
_QUESTION = re.compile(r"\?\W*$|^\W*(?:how|what|when|where|which|who|whom|whose|why)\b")
_POLITE_REQUEST = re.compile(r"\b(?:can|could|will|would) (?:you|we)\b|\bplease\b")
_CONTINUATION = re.compile(
    r"\W*(?:and |also |plus )*(?:to|with|cc|bcc|copy|for|at|on|in|from|by|via|text|subject|body)\b"
)
"""The start of a clause that continues the instruction before it."""
_TOPIC = re.compile(
    r"\b(?:about|concerning|regarding|who|whom|whose|whether|what|which|why|how|where|because|since|so that"
    r"|saying|telling|(?<=\w )that)\b.*",
    re.DOTALL,
)
"""The part of a clause that says what something is about."""
_OBJECT = re.compile(r"\s+(?:the|an?|this|these|it|them|him|her|all|each|every)\b")
_TO_USER = re.compile(r"\W*(?:me|us|myself)\b")
_PREPOSITION = re.compile(
    r"\b(?:to|into|at|in|on|onto|with|cc|bcc|under|(from|of|by|for|like|than|as|over|against|behind|between|mentioning))\b"
)
"""Words before a destination. After those in the group, the destination only describes something."""
_DIRECT = re.compile(r"(?:\W|\b(?:the|my|our|also|both|again|and|user|everyone|everybody|\S+@\S+)(?=\s|$))*")
"""What may stand between a verb and its target without a preposition."""
_NAMING = re.compile(r"\b(?:named|called)\s['\u2018]?$")
_POSSESSIVE = re.compile(r"['\u2019](?:s\b|\s|$)")


def asks_for_action(action: str, words: str, neighbours: Iterable[str] = ()) -> bool:
    """Return whether the user's folded words ask for the action of a tool with this name.

    A verb or another word of the name counts where it is an instruction, unless it asks to tell or give the user
    something. With an object, or as the verb of the tool itself, it counts anywhere. It does not count if another of
    the server's tools, `neighbours`, fits it better: "share the file" asks for `share_file`, not for `send_email`.
    """
    own, stems = stem_of(_own_verb(action)), _stems_of(action)
    others = [one for one in neighbours if one != action and READ_VERBS.isdisjoint(words_of(one)[:1])]
    sentences = _Sentences(words)
    return not stems.isdisjoint(map(stem_of, _COMMAND.findall(words))) or any(
        (
            (instructs and not _TO_USER.match(words, verb.end()) and _is_verb(verb, words))
            or (verb[0] not in WORDS["nouns"] and (stem_of(verb[0]) == own or _OBJECT.match(words, verb.end())))
        )
        and not _fits_better(others, action, verb, sentences)
        for verb, instructs in _verbs_in(stems.union(map(stem_of, words_of(action))), words)
    )


def _is_verb(word: re.Match[str], words: str) -> bool:
    """Return whether a word is used as a verb: "email" in "email Bob", but not in "files, emails and links"."""
    is_certain = word[0] in _IMPERATIVES and word[0] not in WORDS["noun_verbs"]
    return is_certain or _VERB_USE.match(words, word.end()) is not None


class _Sentences:
    """The words of a text by sentence, read once and only if they are needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(gap.end() for gap in _SENTENCE.finditer(self._text))]

    @cached_property
    def _stems(self) -> list[dict[str, tuple[int, int]]]:
        """For each sentence, the first end and the last start of each stem."""
        found: list[dict[str, tuple[int, int]]] = [{} for _ in self._starts]
        for run in _RUN.finditer(self._text):
            stems = found[bisect_right(self._starts, run.start()) - 1]
            for stem in map(stem_of, words_in(run[0])):
                stems[stem] = stems.get(stem, run.span()[::-1])[0], run.start()
        return found

    def have(self, nouns: Iterable[str], verb: re.Match[str], *, before: bool) -> bool:
        """Return whether the sentence of a verb has one of the stems after the verb, or also `before` it."""
        stems = self._stems[bisect_right(self._starts, verb.start()) - 1]
        spans = (stems[noun] for noun in nouns if noun in stems)
        return any(last >= verb.end() or (before and first <= verb.start()) for first, last in spans)


def _fits_better(others: Iterable[str], action: str, verb: re.Match[str], sentences: _Sentences) -> bool:
    """Return whether one of the other tools fits a verb and the words after it better than the action its sentence.

    Any of them whose verb it is fits better than an action in whose name it is another word.
    """
    stem = stem_of(verb[0])
    rivals = [other for other in others if stem in _stems_of(other)]
    if not rivals or stem not in _stems_of(action):
        return bool(rivals)
    least = (stem_of(_own_verb(action)) == stem) + sentences.have(_nouns_of(action), verb, before=True)
    return any(
        (stem_of(_own_verb(rival)) == stem) + sentences.have(_nouns_of(rival), verb, before=False) > least
        for rival in rivals
    )


def is_removal(action: str) -> bool:
    """Return whether a tool with this name removes something."""
    return _own_verb(action) in ACTIONS["delete"]


def instruction_span(action: str, text: str) -> tuple[int, int] | None:
    """Return the start and end of the first verb in a folded text that instructs somebody to do the action."""
    own_stem = stem_of(_own_verb(action))
    for verb, instructs in _verbs_in(_stems_of(action), text):
        is_own = len(own_stem) > 4 and stem_of(verb[0]) == own_stem
        if verb[0] not in WORDS["nouns"] and (instructs or is_own):
            return verb.span()
    return None


def _verbs_in(stems: Set[str], text: str) -> Iterator[tuple[re.Match[str], bool]]:
    """Yield each word with one of these stems, with whether its place in the clause makes it an instruction."""
    last = ""
    for match in _WORD.finditer(text):
        word = match[0]
        if stem_of(word) in stems and not _FIELD_NAME.match(text, match.end()):
            before = text[max(0, match.start() - 4) : match.start()]
            yield match, last in _REQUEST_WORDS or _CLAUSE_START.search(before) is not None
        last = word


def _orders(action: str, words: str) -> list[str]:
    """Return the parts of the user's words that order the action, folded, each from its verb to its end.

    An order begins a sentence, or follows another order. Everything else is left out: questions, reports, conditions,
    quotations, negations, what an order is about, and an order that the user takes back.
    """
    text = _QUOTED.sub(lambda quoted: " " if re.search(r"\s", quoted[0].strip()) else quoted[0], words)
    sentences = [_HARMLESS_NEGATION.sub("please", fold_text(sentence)) for sentence in _SENTENCE.split(text)]
    if any(_RETRACTION.search(sentence) for sentence in sentences):
        return []
    return [order for sentence in sentences for order in _orders_in_sentence(action, sentence)]


def _orders_in_sentence(action: str, sentence: str) -> list[str]:
    if (_QUESTION.search(sentence) and not _POLITE_REQUEST.search(sentence)) or _CONDITION.search(sentence):
        return []
    if _REPORT.search(_TOPIC.sub("", sentence)):
        return []
    orders = []
    may_begin, asks = True, False
    *parts, last = _CLAUSE_ENDS.split(sentence)
    for clause, mark in [*zip(parts[::2], parts[1::2], strict=True), (last, None)]:
        if _RETRACTION.search(clause):
            return []
        if not _NEGATION.search(_TOPIC.sub("", clause)):
            order = _order_in(action, clause) if may_begin else None
            asks = order is not None or (asks and _CONTINUATION.match(clause) is not None)
            order = _without_next_order(_TOPIC.sub("", clause if order is None else order))
            if asks and not _STATEMENT.search(order) and not _TO_USER.match(order.partition(" ")[2]):
                orders.append(order)
        is_opening = _OPENING.fullmatch(clause) is not None
        may_begin = is_opening or (may_begin and mark != ":" and _first_verb(clause) is not None)
    return orders


def _order_in(action: str, clause: str) -> str | None:
    """Return the clause from the verb that orders the action, or None."""
    start = 0
    for part in _NEXT_ORDER.split(clause):
        start = clause.index(part, start)
        verb = _first_verb(clause, start)
        if verb is None:
            return None
        if verb[0] in _verbs_of(action):
            return clause[verb.start() :]
    return None


def _without_next_order(order: str) -> str:
    """Return an order up to an `and` that begins something else than another target."""
    first, *others = _NEXT_ORDER.split(order)
    kept = [part for part in others if len(part.split()) == 1 or "@" in part.split()[0] or _CONTINUATION.match(part)]
    return " and ".join([first, *kept])


def _first_verb(clause: str, start: int = 0) -> re.Match[str] | None:
    """Return the verb that directly follows the opening of a clause, or None."""
    opening = _OPENING.match(clause, start)
    word = _WORD.match(clause, opening.end() if opening else start)
    return word if word and word[0] in _IMPERATIVES else None


def is_requested(call: ToolCall, words: str) -> bool:
    """Return whether the user's words order a call: its action, with its destinations and ids.

    The order need not state a path, a default, or a field that the tool's server returned. If other words mention such
    a value, the order must state it too.
    """
    orders, all_words = _orders(call.tool_name.partition(".")[2], words), fold_text(words)
    if not orders:
        return False
    for name, value in call.params.items():
        if call.role_of(name) is not ArgumentRole.DESTINATION and not is_id(name):
            continue
        origin = call.provenance.get(name)
        is_known = call.is_from_server(name) or (origin is not None and origin.kind is OriginKind.DEFAULT)
        for text in (fold_text(str(leaf.value)) for leaf in leaves(value)):
            may_be_omitted = is_known or ("/" in text and not is_address(text))
            is_stated = any(_states_target(order, text, is_id=is_id(name)) for order in orders)
            if not is_stated and (not may_be_omitted or find_words(all_words, text) >= 0):
                return False
    return True


def _states_target(order: str, text: str, *, is_id: bool) -> bool:
    """Return whether an order names a value as its target, and not only to describe something else."""
    at = find_words(order, text)
    while at >= 0:
        prepositions = [*_PREPOSITION.finditer(order, 0, at)]
        is_direct = is_id or prepositions or _DIRECT.fullmatch(order.partition(" ")[2][: at - order.find(" ") - 1])
        is_described = not is_direct or bool(prepositions and prepositions[-1][1])
        is_named = not is_address(text) and _NAMING.search(order, 0, at) is not None
        is_quoted = at > 0 and order[at - 1] in "'\u2018"
        end = at + len(text) + is_quoted  # a closing quote is no possessive
        if is_named or (not is_described and not _POSSESSIVE.match(order, end)):
            return True
        at = find_words(order, text, at + 1)
    return False


@lru_cache(maxsize=4_096)
def _verbs_of(action: str) -> frozenset[str]:
    """Return the verb in a tool's name, and all verbs that ask for the same action."""
    own = _own_verb(action)
    return frozenset({own, *ACTIONS.get(own, ())} - {""})


@lru_cache(maxsize=4_096)
def _stems_of(action: str) -> frozenset[str]:
    return frozenset(map(stem_of, _verbs_of(action)))


@lru_cache(maxsize=4_096)
def _nouns_of(action: str) -> frozenset[str]:
    """Return the stems of the words in a tool's name that are not its verb."""
    own = _own_verb(action)
    return frozenset(stem_of(word) for word in words_of(action) if word != own and word not in STOP_WORDS)


def _own_verb(action: str) -> str:
    words = words_of(action)
    return next((word for word in words if word in _VERBS), words[0] if words else "")
