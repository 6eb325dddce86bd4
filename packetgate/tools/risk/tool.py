"""What a tool may do: by what its server hints, by what its parameters hold, and by a model that learned it.

A tool only reads where a server that the configuration trusts says so. What was learned of tools with known labels, and
the hints of other servers, may raise the risk, and never lower it: the rest counts as a write. Of such a tool it is
told whether it looks like one that reads, so that people can be asked about it with that said.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from packetgate.state.printing import printable
from packetgate.state.routing import Risk
from packetgate.tools.risk.call import Judgement
from packetgate.tools.risk.features import Definition, features_of, joined_in, kind_of, kind_said, says_read_only
from packetgate.tools.risk.model import model
from packetgate.tools.risk.parameters import takes
from packetgate.tools.risk.reasons import MOST_CHARS, reasons
from packetgate.tools.spec.categories import EXTERNAL, category_of
from packetgate.tools.text.words import STOP_WORDS, words_in, words_of

UNTRUSTED = "its server says that it only reads, and is not trusted"
UNHEARD = "nothing vouches that it only reads"
CERTAIN = 0.9
"""Probability from which on a tool that sends or runs something is not made a read by a trusted hint."""
CAUTION = 2.0
"""How much surer the model must be that a tool only reads where it takes code or a command."""

_HOLDS = {
    "sql": "its parameter `{}` holds SQL",
    "language": "its parameter `{}` holds a language that can change things",
    "code": "its parameter `{}` holds code",
    "command": "its parameter `{}` holds a command",
}
_SENDS = frozenset(
    "broadcast call deploy dispatch email eval evaluate exec execute forward invoke launch mail notify pay post publish"
    " push reply run send share shell spawn submit transfer tweet withdraw".split()
)
_MIXED = re.compile(
    r"[A-Za-z][\u0370-\u052f\u0530-\u058f\u13a0-\u13ff]|[\u0370-\u052f\u0530-\u058f\u13a0-\u13ff][A-Za-z]"
)
_FEW_WORDS = 4


class Annotations(Protocol):
    """The MCP tool annotations that bear on risk; each None when the server says nothing."""

    @property
    def read_only_hint(self) -> bool | None:
        """Whether it only reads."""

    @property
    def destructive_hint(self) -> bool | None:
        """Whether it may destroy something."""

    @property
    def open_world_hint(self) -> bool | None:
        """Whether it reaches out of a closed world."""


@dataclass(frozen=True)
class ToolJudgement(Judgement):
    """What a tool may do, and the least that a call of it does whatever its arguments."""

    least: Risk = Risk.WRITE
    """Below `risk` only where it does what its SQL says."""
    probability: float = 1.0
    """That it writes or executes, by its text alone: measured on servers that the model had not seen."""

    @property
    def looks(self) -> Risk:
        """What it looks like, by what was learned too: for what a request is about, never for what may run."""
        return Risk.READ if self.unvouched and self.risk is Risk.WRITE else self.risk


def judge(tool: Definition, annotations: Annotations | None = None, *, trusted: bool = False) -> ToolJudgement:
    """Judge a tool by its definition, then by its server's hints.

    Where it takes SQL, its `least` is a read if its server is trusted: its calls are then what their SQL says.
    """
    told = _by_text(tool)
    open_world = _reaches_outside(tool, annotations, trusted=trusted)
    risk, least, why, unvouched = _vouched(tool, told, annotations, trusted=trusted)
    return ToolJudgement(risk, open_world, why, unvouched, least, told.probability)


def _by_text(tool: Definition) -> ToolJudgement:
    """Return what a tool looks like: what it would be if its text could be believed."""
    features = features_of(tool)
    learned = model()
    score = learned.score(features)
    probability = learned.probability(score)
    unknown = _not_understood(tool)
    held = dict(reversed([*takes(tool.description, tool.schema)]))
    asks = next((kind for kind in ("command", "code", "language", "sql") if kind in held), None)
    holds = (_HOLDS[asks].format(printable(held[asks])[:MOST_CHARS]),) if asks else ()
    careful = CAUTION if asks in ("code", "command") else 0.0
    for_reading = reasons(tool, features, learned.parts(features), reads=True)
    reads = not unknown and bool(for_reading) and score < learned.threshold - careful
    if reads and (asks not in ("sql", "language") or says_read_only(tool.description)):
        return ToolJudgement(Risk.READ, False, for_reading, False, Risk.READ, probability)
    runs = any(kind_of(word) == "runs" for word in words_of(tool.name)) and not unknown
    risk = Risk.EXECUTE if asks or runs else Risk.WRITE
    because = reasons(tool, features, learned.parts(features), reads=False) if not (reads and asks) else ()
    why = (*((unknown,) if unknown else ()), *holds, *because)
    least = Risk.READ if asks == "sql" and reads else risk
    return ToolJudgement(
        risk, False, why or ("nothing in its definition says that it only reads",), False, least, probability
    )


def _vouched(
    tool: Definition, told: ToolJudgement, hints: Annotations | None, *, trusted: bool
) -> tuple[Risk, Risk, tuple[str, ...], bool]:
    """Return the risk, the least of it, why, and whether it looks like a read that nothing vouches for."""
    held = {kind for kind, _ in takes(tool.description, tool.schema)} & _HOLDS.keys()
    says_reads = hints is not None and hints.read_only_hint is True
    sends = told.probability >= CERTAIN and _sends(tool.name)
    if trusted and says_reads and (told.risk is Risk.READ or (told.risk is Risk.WRITE and not sends)):
        return Risk.READ, Risk.READ, ("its server, which is trusted, says that it only reads",), False
    risk = max(told.risk, Risk.EXECUTE if held else Risk.WRITE, key=lambda one: one.severity)
    least = Risk.READ if trusted and held == {"sql"} else risk
    looks = told.least is Risk.READ and (hints is None or says_reads)
    why = told.why if told.risk is not Risk.READ else ()
    return risk, least, (*_said(hints, looks=looks, trusted=trusted), *why), looks


def _said(hints: Annotations | None, *, looks: bool, trusted: bool) -> Iterator[str]:
    """Yield what its server's hints, or their lack, make of it."""
    if hints is None:
        if looks:
            yield UNHEARD
    elif hints.read_only_hint:
        if not trusted:
            yield UNTRUSTED
    elif hints.destructive_hint:
        yield "its server says that it is destructive"
    elif hints.read_only_hint is False:
        yield "its server says that it does more than read"
    else:
        yield "its server gives hints, and none that it only reads"


def _sends(name: str) -> bool:
    return bool(_SENDS & set(words_of(name)))


def _not_understood(tool: Definition) -> str:
    """Return why the words of a definition cannot be relied on, empty where they can."""
    if not words_of(tool.name):
        return "its name has no word that is known"
    if not tool.name.isascii():
        return "its name is not in plain letters"
    joined = joined_in(tool.name)
    if joined:
        return f"its name also says `{joined}`"
    text = tool.description[:2_000]
    if _MIXED.search(text):
        return "its description mixes alphabets within a word"
    letters = [char for char in text if char.isalpha()]
    words = words_in(text[:600])
    foreign = sum(not char.isascii() for char in letters) > 0.3 * len(letters)
    strange = len(words) > _FEW_WORDS and not any(word in STOP_WORDS or kind_said(word) for word in words)
    return "its description is not in English" if foreign or strange else ""


def _reaches_outside(tool: Definition, hints: Annotations | None, *, trusted: bool) -> bool:
    said = hints.open_world_hint if hints else None
    if said or (trusted and said is False):
        return bool(said)
    if any(kind == "address" for kind, _ in takes(tool.description, tool.schema)):
        return True
    words = {"name": words_in(tool.name), "brief": words_in(tool.description[:400]), "tags": [], "server": []}
    return category_of(words) in EXTERNAL
