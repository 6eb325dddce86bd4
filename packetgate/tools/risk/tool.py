"""Rate the risk of a tool by its server's annotations, its parameters, and the verbs of its name and description.

A tool is a read only if the registry of known servers, a trusted server or the user says so. Its text and the
annotations of other servers can only raise the risk. A tool that looks like a read, but is not confirmed as one, is an
unconfirmed read and counts as a write (`is_unconfirmed_read`).
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from packetgate.state.printing import printable
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.risk.call import Judgement, quoted
from packetgate.tools.risk.parameter_kinds import Definition, parameter_kinds, says_read_only, word_lists
from packetgate.tools.risk.registry import Confirmation
from packetgate.tools.spec.categories import EXTERNAL, category_of
from packetgate.tools.spec.tool_spec import ToolSpec, subschemas
from packetgate.tools.text.verbs import (
    DOUBTFUL_READS,
    JOINING_WORDS,
    POSSIBLE_CHANGES,
    SENDING_VERBS,
    SURE_CHANGES,
    inflected_verb_kind,
    joined_in,
    verb_kind,
)
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_in, words_of

if TYPE_CHECKING:
    from mcp_types import ToolAnnotations

NOBODY = "nobody"
_UNTRUSTED_HINT = "its server, which is not trusted, says that it only reads"
_UNCONFIRMED = "nothing confirms that it only reads"
_MAX_NAMED_TOOLS = 6

_PARAMETER_REASONS = {
    "sql": "its parameter `{}` holds SQL",
    "language": "its parameter `{}` holds a language that can change things",
    "code": "its parameter `{}` holds code",
    "command": "its parameter `{}` holds a command",
}
_MIXED_ALPHABETS = re.compile(
    r"[A-Za-z][\u0370-\u052f\u0530-\u058f\u13a0-\u13ff]|[\u0370-\u052f\u0530-\u058f\u13a0-\u13ff][A-Za-z]"
)
_MIN_WORDS = 4
"""A description with more words must have a known word to count as English."""
_FIRST_SENTENCE = re.compile(r"\s*(.{,400}?)(?:(?<=[.!?])\s|\n|$)", re.DOTALL)
_LEAD_WORDS = 4
"""Number of content words at the start of a description that may contain its verb."""
_WORDS = word_lists("definitions")
_SKIPPED = STOP_WORDS | _WORDS["boilerplate"] | _WORDS["lets"]
_DOUBTFUL_STEMS = frozenset(map(stem_of, DOUBTFUL_READS))
_DESCRIBING = word_lists("arguments")["about_answer"] - word_lists("arguments")["orders"]
"""Verbs that describe the form of an answer, as in `list and group items`."""


@dataclass(frozen=True)
class ToolJudgement(Judgement):
    """The risk of a tool."""

    least_risk: Risk = Risk.WRITE
    """Least risk of any call. It is below `risk` for a tool that runs SQL or another query language (each call has the
    risk of its query), and for a known tool that only reads if a call omits certain parameters."""
    source: str = NOBODY
    """Source of the risk, as `ToolSpec.risk_source`."""

    @property
    def apparent_risk(self) -> Risk:
        """The risk, with an unconfirmed read taken as a read; for matching requests, never for permission."""
        return Risk.READ if self.is_unconfirmed_read and self.risk is Risk.WRITE else self.risk


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
        confirmation: the tool's label in the registry of known servers, which overrides the other evidence.
    """
    reaches_outside = _reaches_outside(tool, annotations, trusted=trusted)
    if confirmation is not None:
        return _judge_known(confirmation, reaches_outside=reaches_outside)
    by_text = _judge_text(tool)
    says_reads = annotations is not None and annotations.read_only_hint is True
    sends = not SENDING_VERBS.isdisjoint(words_of(tool.name))
    if trusted and says_reads and (by_text.risk is Risk.READ or (by_text.risk is Risk.WRITE and not sends)):
        reason = "its server, which is trusted, says that it only reads"
        return ToolJudgement(Risk.READ, reaches_outside, (reason,), least_risk=Risk.READ, source="trusted server")
    kinds = {kind for kind, _ in parameter_kinds(tool.description, tool.schema)} & _PARAMETER_REASONS.keys()
    risk = max(by_text.risk, Risk.EXECUTE if kinds else Risk.WRITE, key=lambda risk: risk.severity)
    least_risk = Risk.READ if trusted and kinds and kinds <= {"sql", "language"} else risk
    is_unconfirmed_read = by_text.least_risk is Risk.READ and (annotations is None or says_reads)
    reasons = (
        *_annotation_reasons(annotations, is_unconfirmed_read=is_unconfirmed_read, trusted=trusted),
        *(by_text.reasons if by_text.risk is not Risk.READ else ()),
    )
    return ToolJudgement(risk, reaches_outside, reasons, is_unconfirmed_read, least_risk)


def _judge_known(confirmation: Confirmation, *, reaches_outside: bool) -> ToolJudgement:
    risk, source = confirmation.label.risk, f"registry {confirmation.registry_version}"
    why = f" ({confirmation.label.why})" if confirmation.label.why else ""
    return ToolJudgement(
        risk,
        reaches_outside or bool(confirmation.label.outward),
        (f"the registry of known servers (version {confirmation.registry_version}) labels it as {risk}{why}",),
        least_risk=Risk.READ if confirmation.label.read_without else risk,
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


def unconfirmed_reads_note(specs: Sequence[ToolSpec]) -> tuple[str, str]:
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
    note = f"{count} ({names}{more}); each needs approval at its first use"
    return note, f"if they only read, {', or '.join(fixes)}"


def _risk_setting(name: str) -> str:
    # a name with a wildcard would match other tools as well
    return "" if {*name} & {*"*?["} else f'tools.{json.dumps(printable(name), ensure_ascii=False)}.risk = "read"'


def _judge_text(tool: Definition) -> ToolJudgement:
    """Return the risk of a tool by its name, description and parameters, assuming that they are true."""
    problem = _text_problem(tool)
    parameters = dict(reversed([*parameter_kinds(tool.description, tool.schema)]))
    program = next((kind for kind in ("command", "code", "language", "sql") if kind in parameters), None)
    reads = not problem and looks_like_read(tool)
    if reads and (program is None or (program in ("sql", "language") and says_read_only(tool.description))):
        return ToolJudgement(Risk.READ, least_risk=Risk.READ)
    verbs = [word for word in words_of(tool.name) if verb_kind(word) in SURE_CHANGES]
    runs = not problem and any(verb_kind(word) == "runs" for word in verbs)
    reasons = [problem] if problem else []
    reasons += [_PARAMETER_REASONS[program].format(quoted(parameters[program]))] if program else []
    reasons += [f"its name says `{quoted(verbs[0])}`"] if verbs and not problem else []
    reasons = reasons or ["nothing in its definition says that it only reads"]
    least_risk = Risk.READ if program == "sql" and reads else Risk.EXECUTE if program or runs else Risk.WRITE
    return ToolJudgement(Risk.EXECUTE if program or runs else Risk.WRITE, reasons=tuple(reasons), least_risk=least_risk)


def looks_like_read(tool: Definition) -> bool:
    """Return whether a tool looks like a read: its name or its description has a verb of reading. Neither, nor a
    parameter's choice, may have a verb of changing or running that may be the tool's.
    """
    names = words_of(tool.name)
    kinds = ["either" if word in DOUBTFUL_READS else verb_kind(word) for word in names]
    if not {*names}.isdisjoint(_WORDS["languages"] | _WORDS["sql"]) and not says_read_only(tool.description):
        return False
    match = _FIRST_SENTENCE.match(tool.description)
    sentence = words_in(match[1]) if match else []
    content = [
        "either" if stem_of(word) in _DOUBTFUL_STEMS else inflected_verb_kind(word)
        for word in sentence
        if word not in _SKIPPED
    ][:_LEAD_WORDS]
    lead = next(filter(None, content), "")
    verb = next((kind for kind in kinds if kind in ("reads", *SURE_CHANGES)), next(filter(None, kinds), ""))
    if {verb, kinds[0]} & POSSIBLE_CHANGES or lead in SURE_CHANGES:
        return False
    has_reading_verb = lead == "reads" or verb in ("reads", "reads?")
    return has_reading_verb and not _has_second_verb(names, sentence) and not _has_changing_choice(tool)


def _has_second_verb(names: Sequence[str], sentence: Sequence[str]) -> bool:
    """Return whether a name or a sentence joins a verb that may change or run something, as in `fetch and merge`."""
    in_name = any(
        link in JOINING_WORDS - {"to"} and verb_kind(word) not in ("", "reads", "reads?")
        for link, word in pairwise(names)
    )
    in_sentence = any(
        verb_kind(word) in (SURE_CHANGES if link == "to" else POSSIBLE_CHANGES)
        or (link != "to" and inflected_verb_kind(word) in SURE_CHANGES)
        for link, word in pairwise(sentence)
        if link in JOINING_WORDS and word not in _DESCRIBING
    )
    return in_name or in_sentence


def _has_changing_choice(tool: Definition) -> bool:
    choices = [part.get("enum") for _, part in subschemas(dict(tool.schema))]
    texts = [choice for some in choices if isinstance(some, list) for choice in some if isinstance(choice, str)]
    return any(verb_kind(word) in SURE_CHANGES for text in texts for word in words_of(text)[:1])


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
