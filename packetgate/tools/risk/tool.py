"""Rate the risk of a tool by its server's annotations, its parameters and a learned model.

A tool is a read only if the registry of known servers, a trusted server or the user says so. The model and the
annotations of other servers can only raise the risk. A tool that looks like a read, but is not confirmed as one, counts
as a write (`is_unconfirmed_read`).
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
from packetgate.tools.risk.registry import Confirmation
from packetgate.tools.spec.categories import EXTERNAL, category_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_in, words_of

if TYPE_CHECKING:
    from mcp_types import ToolAnnotations

RISK_WEIGHTS = Path(__file__).with_name("weights.json")
TRUSTED_HINT_LIMIT = 0.9
"""Probability of a write from which a trusted hint does not make a tool that sends or runs something a read."""
CODE_MARGIN = 2.0
"""Distance below the threshold at which the score of a tool that takes code or a command looks like a read."""
NOBODY = "nobody"
_UNTRUSTED_HINT = "its server, which is not trusted, says that it only reads"
_UNCONFIRMED = "nothing confirms that it only reads"
_MAX_REASONS = 2
_MIN_CONTRIBUTION = 0.15
"""Smallest contribution to the score that is shown as a reason."""
_MAX_NAMED_TOOLS = 6

_PARAMETER_REASONS = {
    "sql": "its parameter `{}` holds SQL",
    "language": "its parameter `{}` holds a language that can change things",
    "code": "its parameter `{}` holds code",
    "command": "its parameter `{}` holds a command",
}
_SENDING_VERBS = frozenset(
    "broadcast call deploy dispatch email eval evaluate exec execute forward invoke launch mail notify pay post publish"
    " push reply run send share shell spawn submit transfer tweet withdraw".split()
)
_MIXED_ALPHABETS = re.compile(
    r"[A-Za-z][\u0370-\u052f\u0530-\u058f\u13a0-\u13ff]|[\u0370-\u052f\u0530-\u058f\u13a0-\u13ff][A-Za-z]"
)
_MIN_WORDS = 4
"""A description with more words must have a known word to count as English."""
_REASON_TEXTS = {
    "name": "its name says `{}`",
    "lead": "its description begins with `{}`",
    "first": "its description mentions `{}`",
    "param": "it takes `{}`",
    "choice": "one of its choices is `{}`",
}
_GROUPS_OF_KIND = {"kind:name": "name", "kind:lead": "lead", "kind:and": "lead"}


@dataclass(frozen=True)
class ToolJudgement(Judgement):
    """The risk of a tool."""

    least_risk: Risk = Risk.WRITE
    """Least risk of any call. It is below `risk` for a tool that runs SQL: each call has the risk of its SQL; and for a
    known tool that only reads if a call leaves certain parameters out."""
    probability: float = 1.0
    """Probability, by the tool's text, that the tool writes or executes."""
    source: str = NOBODY
    """Who says that the tool has this risk."""

    @property
    def apparent_risk(self) -> Risk:
        """The apparent risk, for matching requests; never used for permission."""
        return Risk.READ if self.is_unconfirmed_read and self.risk is Risk.WRITE else self.risk


@dataclass(frozen=True)
class RiskModel:
    """A linear model over the features of a definition; a score above the threshold means a write or more."""

    version: int
    bias: float
    threshold: float
    slope: float
    """`slope` and `offset` convert a score to a probability. They are fitted on held-out servers."""
    offset: float
    weights: Mapping[str, float]

    def contributions(self, features: Mapping[str, float]) -> dict[str, float]:
        """Return the contribution of each known feature to the score."""
        return {name: value * self.weights[name] for name, value in features.items() if name in self.weights}

    def score(self, features: Mapping[str, float]) -> float:
        """Return the score of a definition; the higher, the more probable is a write."""
        return self.bias + sum(self.contributions(features).values())

    def probability(self, score: float) -> float:
        """Return the probability that a tool with this score writes or executes."""
        return 1 / (1 + exp(-max(-50.0, min(50.0, self.slope * score + self.offset))))


@cache
def risk_model() -> RiskModel:
    """Return the shipped model.

    Raises:
        WeightsError: the file is missing, invalid, or fitted to another version of the features.
    """
    return load_json(RISK_WEIGHTS, _model_of)


def judge_tool(
    tool: Definition,
    annotations: "ToolAnnotations | None" = None,
    *,
    trusted: bool = False,
    confirmation: Confirmation | None = None,
) -> ToolJudgement:
    """Return the risk of a tool.

    Args:
        trusted: the user trusts the server's annotations.
        confirmation: the tool's label in the registry of known servers, which outweighs everything else here.
    """
    by_text = _judge_text(tool)
    open_world = _reaches_outside(tool, annotations, trusted=trusted)
    if confirmation is not None:
        return _judge_known(confirmation, by_text, open_world=open_world)
    says_reads = annotations is not None and annotations.read_only_hint is True
    sends = by_text.probability >= TRUSTED_HINT_LIMIT and bool(_SENDING_VERBS & {*words_of(tool.name)})
    if trusted and says_reads and (by_text.risk is Risk.READ or (by_text.risk is Risk.WRITE and not sends)):
        reason = "its server, which is trusted, says that it only reads"
        return ToolJudgement(
            Risk.READ,
            open_world,
            (reason,),
            least_risk=Risk.READ,
            probability=by_text.probability,
            source="trusted server",
        )
    kinds = {kind for kind, _ in parameter_kinds(tool.description, tool.schema)} & _PARAMETER_REASONS.keys()
    risk = max(by_text.risk, Risk.EXECUTE if kinds else Risk.WRITE, key=lambda risk: risk.severity)
    least_risk = Risk.READ if trusted and kinds == {"sql"} else risk
    is_unconfirmed_read = by_text.least_risk is Risk.READ and (annotations is None or says_reads)
    reasons = (
        *_annotation_reasons(annotations, is_unconfirmed_read=is_unconfirmed_read, trusted=trusted),
        *(by_text.reasons if by_text.risk is not Risk.READ else ()),
    )
    return ToolJudgement(risk, open_world, reasons, is_unconfirmed_read, least_risk, by_text.probability)


def _judge_known(confirmation: Confirmation, by_text: ToolJudgement, *, open_world: bool) -> ToolJudgement:
    risk, source = confirmation.label.risk, f"registry {confirmation.registry_version}"
    why = f" ({confirmation.label.why})" if confirmation.label.why else ""
    verbs = {Risk.READ: "only reads", Risk.WRITE: "changes something", Risk.EXECUTE: "runs what it receives"}
    return ToolJudgement(
        risk,
        open_world or bool(confirmation.label.outward),
        (f"the registry of known servers (version {confirmation.registry_version}) says that it {verbs[risk]}{why}",),
        least_risk=Risk.READ if confirmation.label.read_without else risk,
        probability=by_text.probability,
        source=source,
    )


def confirm_read_hint(call: ToolCall) -> str:
    """Return how the user can confirm that the call's tool only reads; empty if that would not make the call a read."""
    line = _risk_setting(call.tool_name) if call.is_unconfirmed_read else ""
    trust = (
        ', or add `"trusted": true` to its server\'s entry in mcp.json' if _UNTRUSTED_HINT in call.risk_reasons else ""
    )
    return (
        f"If {call.tool_name} only reads, add this line at the top of packetgate.toml: `{line}`{trust}." if line else ""
    )


def unconfirmed_reads_note(specs: Sequence[ToolSpec]) -> str:
    """Return a note that names a server's unconfirmed reads, and how the user can confirm them."""
    names = ", ".join(spec.upstream_name for spec in specs[:_MAX_NAMED_TOOLS])
    more = ", …" if len(specs) > _MAX_NAMED_TOOLS else ""
    fixes = (
        ['add "trusted": true to the server\'s entry in mcp.json']
        if all(_UNTRUSTED_HINT in spec.risk_reasons for spec in specs)
        else []
    )
    lines = [line for spec in specs if (line := _risk_setting(spec.name))]
    fixes += [f"for each tool, add a line such as {lines[0]} at the top of packetgate.toml"] if lines else []
    count = (
        f"tools that look like reads but count as writes, because nothing confirms that they only read: {len(specs)}"
    )
    return f"{count} ({names}{more}); each is asked about at its first use. If they only read, {', or '.join(fixes)}"


def _model_of(stored: Mapping[str, Any]) -> RiskModel:
    loaded = RiskModel(**stored)
    if loaded.version != VERSION:
        raise ValueError(f"fitted to features of version {loaded.version}, not {VERSION}: train the model again")
    return loaded


def _risk_setting(name: str) -> str:
    # a name with a wildcard would match other tools as well
    return "" if {*name} & {*"*?["} else f'tools.{json.dumps(printable(name), ensure_ascii=False)}.risk = "read"'


def _judge_text(tool: Definition) -> ToolJudgement:
    """Return the risk of a tool by its name, description and parameters, as if they were true."""
    features, model = features_of(tool), risk_model()
    score, contributions = model.score(features), model.contributions(features)
    probability = model.probability(score)
    problem = _text_problem(tool)
    parameters = dict(reversed([*parameter_kinds(tool.description, tool.schema)]))
    program = next((kind for kind in ("command", "code", "language", "sql") if kind in parameters), None)
    read_reasons = _reasons(tool, features, contributions, reads=True)
    margin = CODE_MARGIN if program in ("code", "command") else 0.0
    reads = not problem and bool(read_reasons) and score < model.threshold - margin
    if reads and (program not in ("sql", "language") or says_read_only(tool.description)):
        return ToolJudgement(Risk.READ, reasons=read_reasons, least_risk=Risk.READ, probability=probability)
    runs = any(verb_kind(word) == "runs" for word in words_of(tool.name)) and not problem
    risk = Risk.EXECUTE if program or runs else Risk.WRITE
    reasons = [problem] if problem else []
    reasons += [_PARAMETER_REASONS[program].format(quoted(parameters[program]))] if program else []
    reasons += _reasons(tool, features, contributions, reads=False) if not (reads and program) else ()
    least_risk = Risk.READ if program == "sql" and reads else risk
    reasons = reasons or ["nothing in its definition says that it only reads"]
    return ToolJudgement(risk, reasons=tuple(reasons), least_risk=least_risk, probability=probability)


def _annotation_reasons(
    annotations: "ToolAnnotations | None", *, is_unconfirmed_read: bool, trusted: bool
) -> Iterator[str]:
    if annotations is None:
        if is_unconfirmed_read:
            yield _UNCONFIRMED
    elif annotations.read_only_hint:
        if not trusted:
            yield _UNTRUSTED_HINT
    elif annotations.destructive_hint:
        yield "its server says that it is destructive"
    elif annotations.read_only_hint is False:
        yield "its server says that it does more than read"
    else:
        yield "none of its server's annotations says that it only reads"


def _text_problem(tool: Definition) -> str:
    if not words_of(tool.name):
        return "its name has no word in ASCII letters"
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
    unknown = len(words) > _MIN_WORDS and not any(word in STOP_WORDS or inflected_verb_kind(word) for word in words)
    return "its description is not in English" if foreign or unknown else ""


def _reaches_outside(tool: Definition, annotations: "ToolAnnotations | None", *, trusted: bool) -> bool:
    hint = annotations.open_world_hint if annotations else None
    if hint or (trusted and hint is False):
        return bool(hint)
    if any(kind == "address" for kind, _ in parameter_kinds(tool.description, tool.schema)):
        return True
    words = {"name": words_in(tool.name), "brief": words_in(tool.description[:400]), "tags": [], "server": []}
    return category_of(words) in EXTERNAL


def _reasons(
    tool: Definition, features: Mapping[str, float], contributions: Mapping[str, float], *, reads: bool
) -> tuple[str, ...]:
    """Return the words of the definition that speak most for a read or, without `reads`, against a read."""
    sign = -1 if reads else 1
    words = dict(_words_by_feature(tool))
    totals: defaultdict[str, float] = defaultdict(float)
    strongest: dict[str, str] = {}
    for feature in features:
        group, contribution = _group(feature), contributions.get(feature, 0.0) * sign
        totals[group] += contribution
        strongest_yet = contributions.get(strongest.get(group, ""), 0.0) * sign
        if feature in words and (group not in strongest or contribution > strongest_yet):
            strongest[group] = feature
    groups = sorted(
        (group for group in strongest if totals[group] >= _MIN_CONTRIBUTION), key=lambda group: -totals[group]
    )
    return tuple(_REASON_TEXTS[group].format(quoted(words[strongest[group]])) for group in groups[:_MAX_REASONS])


def _group(feature: str) -> str:
    if feature.startswith("kind:"):
        says_kind = not feature.endswith(("none", "noun", "verb"))
        return next((group for kind, group in _GROUPS_OF_KIND.items() if says_kind and feature.startswith(kind)), "")
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
    for name, schema in (properties if isinstance(properties, dict) else {}).items():
        yield f"param:={' '.join(stem_of(word) for word in words_of(str(name)))}", str(name)
        choices = schema.get("enum") if isinstance(schema, dict) else None
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, str) and words_of(choice):
                yield f"choice:={stem_of(words_of(choice)[0])}", choice
