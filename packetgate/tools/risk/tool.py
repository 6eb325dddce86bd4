"""The risk of a tool, by the hints of its server, its parameters and a learned model.

A tool is a read only if a trusted server or the user says so. The model and the hints of other servers can only raise
the risk. A tool that looks like a read and is not vouched for counts as a write, and is marked as `unvouched`.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packetgate.state.printing import printable
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.learned import load_json
from packetgate.tools.risk.call import Judgement, quoted
from packetgate.tools.risk.features import (
    VERSION,
    Definition,
    features_of,
    inflected_verb_kind,
    joined_in,
    parameter_kinds,
    says_read_only,
    verb_kind,
)
from packetgate.tools.spec.categories import EXTERNAL, category_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_in, words_of

if TYPE_CHECKING:
    from mcp_types import ToolAnnotations

RISK_WEIGHTS = Path(__file__).with_name("weights.json")
CERTAIN = 0.9
"""From this probability on, a tool that sends or runs something is no read, even with a trusted hint."""
CAUTION = 2.0
"""How far below the threshold the score of a tool that takes code or a command must be to look like a read."""
_NOT_TRUSTED = "its server, which is not trusted, says that it only reads"
_NOT_VOUCHED = "nothing confirms that it only reads"
_REASONS = 2
_LEAST_WEIGHT = 0.15
"""Smallest part of the score that is a reason."""
_NAMED_TOOLS = 6

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
_MIXED_ALPHABETS = re.compile(
    r"[A-Za-z][\u0370-\u052f\u0530-\u058f\u13a0-\u13ff]|[\u0370-\u052f\u0530-\u058f\u13a0-\u13ff][A-Za-z]"
)
_FEW_WORDS = 4
_REASON_TEXTS = {
    "name": "its name says `{}`",
    "lead": "its description begins with `{}`",
    "first": "its description mentions `{}`",
    "param": "it takes `{}`",
    "choice": "one of its choices is `{}`",
}
_KIND_GROUPS = {"kind:name": "name", "kind:lead": "lead", "kind:and": "lead"}


@dataclass(frozen=True)
class ToolJudgement(Judgement):
    """The risk of a tool."""

    least: Risk = Risk.WRITE
    """The least risk of its calls; below `risk` only if the risk of a call is that of its SQL."""
    probability: float = 1.0

    @property
    def apparent_risk(self) -> Risk:
        """The apparent risk, for matching requests; never used for permission."""
        return Risk.READ if self.unvouched and self.risk is Risk.WRITE else self.risk


@dataclass(frozen=True)
class RiskModel:
    """A linear model over the features of a definition; a score above the threshold means more than a read."""

    version: int
    bias: float
    threshold: float
    slope: float
    """`slope` and `offset` turn a score into a probability; fitted on held-out servers."""
    offset: float
    weights: Mapping[str, float]

    def parts(self, features: Mapping[str, float]) -> dict[str, float]:
        """Return the contribution of each known feature to the score."""
        return {name: value * self.weights[name] for name, value in features.items() if name in self.weights}

    def score(self, features: Mapping[str, float]) -> float:
        """Return the score of a definition; higher means more than a read."""
        return self.bias + sum(self.parts(features).values())

    def probability(self, score: float) -> float:
        """Return the probability that a tool with this score writes or executes."""
        return 1 / (1 + exp(-max(-50.0, min(50.0, self.slope * score + self.offset))))


@cache
def risk_model() -> RiskModel:
    """Return the shipped model.

    Raises:
        WeightsError: the file is missing, broken, or of another version of the features.
    """
    return load_json(RISK_WEIGHTS, _model_of)


def judge_tool(
    tool: Definition, annotations: "ToolAnnotations | None" = None, *, trusted: bool = False
) -> ToolJudgement:
    """Return the risk of a tool by its definition and its server's annotations."""
    looks = _by_text(tool)
    says_reads = annotations is not None and annotations.read_only_hint is True
    sends = looks.probability >= CERTAIN and bool(_SENDS & {*words_of(tool.name)})
    open_world = _reaches_outside(tool, annotations, trusted=trusted)
    if trusted and says_reads and (looks.risk is Risk.READ or (looks.risk is Risk.WRITE and not sends)):
        reason = "its server, which is trusted, says that it only reads"
        return ToolJudgement(Risk.READ, open_world, (reason,), least=Risk.READ, probability=looks.probability)
    held = {kind for kind, _ in parameter_kinds(tool.description, tool.schema)} & _HOLDS.keys()
    risk = max(looks.risk, Risk.EXECUTE if held else Risk.WRITE, key=lambda risk: risk.severity)
    least = Risk.READ if trusted and held == {"sql"} else risk
    unvouched = looks.least is Risk.READ and (annotations is None or says_reads)
    why = (
        *_annotation_reason(annotations, unvouched=unvouched, trusted=trusted),
        *(looks.why if looks.risk is not Risk.READ else ()),
    )
    return ToolJudgement(risk, open_world, why, unvouched, least, looks.probability)


def how_to_vouch(call: ToolCall) -> str:
    """Return how the user can say that the call's tool only reads; empty if that would not make it a read."""
    line = _vouching_line(call.tool_name) if call.unvouched else ""
    trust = ', or `"trusted": true` in its server\'s entry of mcp.json' if _NOT_TRUSTED in call.risk_why else ""
    return f"If it only reads, say so by a line at the top of packetgate.toml: `{line}`{trust}." if line else ""


def unvouched_note(specs: Sequence[ToolSpec]) -> str:
    """Return a note about a server's unvouched tools, and how to vouch for them."""
    names = ", ".join(spec.upstream_name for spec in specs[:_NAMED_TOOLS])
    more = ", …" if len(specs) > _NAMED_TOOLS else ""
    ways = ['"trusted": true in its entry of mcp.json'] if all(_NOT_TRUSTED in spec.risk_why for spec in specs) else []
    lines = [line for spec in specs if (line := _vouching_line(spec.name))]
    ways += [f"for each, a line at the top of packetgate.toml such as {lines[0]}"] if lines else []
    counted = f"tools that look like reads but count as writes, because nothing confirms it: {len(specs)}"
    return f"{counted} ({names}{more}): {'; or, '.join(ways)}"


def _model_of(stored: Mapping[str, Any]) -> RiskModel:
    loaded = RiskModel(**stored)
    if loaded.version != VERSION:
        raise ValueError(f"features {loaded.version}, not {VERSION}: train it again")
    return loaded


def _vouching_line(name: str) -> str:
    # a name with a wildcard would match other tools as well
    return "" if {*name} & {*"*?["} else f'tools.{json.dumps(printable(name), ensure_ascii=False)}.risk = "read"'


def _by_text(tool: Definition) -> ToolJudgement:
    """Return the risk of a tool by its text alone, as if the text were true."""
    features, learned = features_of(tool), risk_model()
    score, parts = learned.score(features), learned.parts(features)
    probability = learned.probability(score)
    unknown = _why_not_understood(tool)
    held = dict(reversed([*parameter_kinds(tool.description, tool.schema)]))
    asks = next((kind for kind in ("command", "code", "language", "sql") if kind in held), None)
    read_reasons = _reasons(tool, features, parts, reads=True)
    careful = CAUTION if asks in ("code", "command") else 0.0
    reads = not unknown and bool(read_reasons) and score < learned.threshold - careful
    if reads and (asks not in ("sql", "language") or says_read_only(tool.description)):
        return ToolJudgement(Risk.READ, why=read_reasons, least=Risk.READ, probability=probability)
    runs = any(verb_kind(word) == "runs" for word in words_of(tool.name)) and not unknown
    risk = Risk.EXECUTE if asks or runs else Risk.WRITE
    why = [unknown] if unknown else []
    why += [_HOLDS[asks].format(quoted(held[asks]))] if asks else []
    why += _reasons(tool, features, parts, reads=False) if not (reads and asks) else ()
    least = Risk.READ if asks == "sql" and reads else risk
    why = why or ["nothing in its definition says that it only reads"]
    return ToolJudgement(risk, why=tuple(why), least=least, probability=probability)


def _annotation_reason(hints: "ToolAnnotations | None", *, unvouched: bool, trusted: bool) -> Iterator[str]:
    if hints is None:
        if unvouched:
            yield _NOT_VOUCHED
    elif hints.read_only_hint:
        if not trusted:
            yield _NOT_TRUSTED
    elif hints.destructive_hint:
        yield "its server says that it is destructive"
    elif hints.read_only_hint is False:
        yield "its server says that it does more than read"
    else:
        yield "its server gives hints, but none that it only reads"


def _why_not_understood(tool: Definition) -> str:
    if not words_of(tool.name):
        return "its name has no known word"
    if not tool.name.isascii():
        return "its name has letters that are not ASCII"
    joined = joined_in(tool.name)
    if joined:
        return f"its name also says `{joined}`"
    text = tool.description[:2_000]
    if _MIXED_ALPHABETS.search(text):
        return "its description mixes alphabets within a word"
    letters = [char for char in text if char.isalpha()]
    words = words_in(text[:600])
    foreign = sum(not char.isascii() for char in letters) > 0.3 * len(letters)
    unknown = len(words) > _FEW_WORDS and not any(word in STOP_WORDS or inflected_verb_kind(word) for word in words)
    return "its description is not in English" if foreign or unknown else ""


def _reaches_outside(tool: Definition, hints: "ToolAnnotations | None", *, trusted: bool) -> bool:
    stated = hints.open_world_hint if hints else None
    if stated or (trusted and stated is False):
        return bool(stated)
    if any(kind == "address" for kind, _ in parameter_kinds(tool.description, tool.schema)):
        return True
    words = {"name": words_in(tool.name), "brief": words_in(tool.description[:400]), "tags": [], "server": []}
    return category_of(words) in EXTERNAL


def _reasons(
    tool: Definition, features: Mapping[str, float], parts: Mapping[str, float], *, reads: bool
) -> tuple[str, ...]:
    """Return the words of the definition that contribute most to a read, or to more than a read."""
    sign = -1 if reads else 1
    words = dict(_words_by_feature(tool))
    weights: defaultdict[str, float] = defaultdict(float)
    strongest: dict[str, str] = {}
    for feature in features:
        group, part = _group(feature), parts.get(feature, 0.0) * sign
        weights[group] += part
        if feature in words and (group not in strongest or part > parts.get(strongest[group], 0.0) * sign):
            strongest[group] = feature
    groups = sorted((group for group in strongest if weights[group] >= _LEAST_WEIGHT), key=lambda one: -weights[one])
    return tuple(_REASON_TEXTS[group].format(quoted(words[strongest[group]])) for group in groups[:_REASONS])


def _group(feature: str) -> str:
    if feature.startswith("kind:"):
        says_kind = not feature.endswith(("none", "noun", "verb"))
        return next((group for kind, group in _KIND_GROUPS.items() if says_kind and feature.startswith(kind)), "")
    return feature.partition(":")[0]


def _words_by_feature(tool: Definition) -> Iterator[tuple[str, str]]:
    for word in words_in(tool.description[:600]):
        stem = stem_of(word)
        yield f"first:{stem}", word
        yield f"lead:{stem}", word
    for word in words_of(tool.name):
        yield f"name:{stem_of(word)}", word
        yield f"name:verb {stem_of(word)}", word
    properties = tool.schema.get("properties")
    for name, part in (properties if isinstance(properties, dict) else {}).items():
        yield f"param:={' '.join(stem_of(word) for word in words_of(str(name)))}", str(name)
        choices = part.get("enum") if isinstance(part, dict) else None
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, str) and words_of(choice):
                yield f"choice:={stem_of(words_of(choice)[0])}", choice
