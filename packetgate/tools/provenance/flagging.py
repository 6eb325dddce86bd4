"""Flag the arguments that the user must see before a call runs, with the reasons."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from packetgate.state.origins import ArgumentRole, Origin, OriginKind
from packetgate.state.routing import Risk
from packetgate.tools.provenance.actions import asks_for, delegates_to_document, instruction_span, mentions_action
from packetgate.tools.provenance.exfiltration import find_leak
from packetgate.tools.provenance.roles import sensitive_part
from packetgate.tools.provenance.sources import Finding, SourceTexts, TextPlace
from packetgate.tools.provenance.tracing import Trace, traces_of
from packetgate.tools.provenance.values import (
    URL,
    fold_text,
    host_of,
    is_address,
    is_mail,
    leaves,
    plain_text,
    without_host,
)
from packetgate.tools.risk.call import judge_call
from packetgate.tools.spec.tool_spec import ToolSpec

THE_CALL = ""
"""Key of a finding about the whole call, used if no argument can be flagged."""


def origins_of(params: Mapping[str, Any], spec: ToolSpec, sources: SourceTexts) -> dict[str, Origin]:
    """Return the origin of each argument, flagged or not. Blocking: the time grows with the size of the sources."""
    traces = {
        name: [
            trace for leaf in leaves(value, name) for trace in traces_of(leaf, spec.parameters.get(name, {}), sources)
        ]
        for name, value in params.items()
    }
    findings = {name: finding for name, value in params.items() if (finding := _sensitive(name, value))}
    judged = judge_call(spec, params)
    if judged.looks is Risk.READ:
        findings = _of_read(params, spec, traces, sources) | findings
    if judged.risk is not Risk.READ:
        findings = _of_change(spec, traces, sources) | findings
    named = traces if THE_CALL not in findings else {**traces, THE_CALL: []}
    return {name: _origin(parts, findings.get(name), spec.server) for name, parts in named.items()}


def _origin(traces: Iterable[Trace], finding: Finding | None, server: str) -> Origin:
    parts = [*traces] or [Trace(OriginKind.DEFAULT, ArgumentRole.OTHER, "")]
    worst = max(parts, key=lambda trace: (trace.badness, trace.worded, trace.tool.partition(".")[0] != server))
    is_destination = any(trace.role is ArgumentRole.DESTINATION for trace in parts)
    role = ArgumentRole.DESTINATION if is_destination else worst.role
    origin = Origin(kind=worst.kind, tool=worst.tool, worded=worst.worded, role=role)
    if finding is None:
        return origin
    if finding.place is None:
        return origin.changed(loud=True, why=finding.why, marked=finding.marked)
    sentence, marked = finding.place.quoted()
    tool = worst.tool or finding.place.passage.tool
    return origin.changed(loud=True, why=finding.why, sentence=sentence, marked=marked, tool=tool)


def _sensitive(name: str, value: Any) -> Finding | None:
    part = sensitive_part(value, name)
    return Finding(f"{part} contains keys or secrets, or configures what may run here") if part else None


def _of_change(spec: ToolSpec, traces: Mapping[str, list[Trace]], sources: SourceTexts) -> dict[str, Finding]:
    action = spec.upstream_name
    requested = mentions_action(action, sources.user.folded)
    findings = {
        name: finding
        for name, parts in traces.items()
        if (finding := _of_value(action, parts, sources, requested=requested))
    }
    order = None if requested else _order(action, sources)
    if order is not None:
        finding = Finding(f"you did not ask for this; text that {order.passage.tool} returned does", order)
        not_given = [name for name, parts in traces.items() if any(not trace.kind.is_given for trace in parts)]
        for name in not_given or [*traces][:1] or [THE_CALL]:
            findings.setdefault(name, finding)
    flagged = (trace for name in findings for trace in traces.get(name, ()))
    if any(trace.role is ArgumentRole.DESTINATION for trace in flagged):
        for name, parts in traces.items():
            for trace in parts:
                if trace.role is ArgumentRole.PAYLOAD and trace.place and not trace.kind.is_given:
                    why = f"it sends what {trace.tool} returned to a destination that you did not name"
                    findings.setdefault(name, Finding(why, trace.place))
    return findings


def _order(action: str, sources: SourceTexts) -> TextPlace | None:
    """Return the place of an instruction for this action, except in a document that the user asked to follow."""
    delegated = delegates_to_document(sources.user.folded)
    for passage in sources.passages:
        span = None if delegated and passage.is_named else instruction_span(action, passage.folded)
        if span:
            return TextPlace(passage, *span)
    return None


def _of_value(action: str, traces: Iterable[Trace], sources: SourceTexts, *, requested: bool) -> Finding | None:
    for trace in traces:
        is_destination, is_text = trace.role is ArgumentRole.DESTINATION, trace.kind is OriginKind.TEXT
        if is_destination and is_text and not _is_named_person(trace, sources):
            return Finding(f"this destination appears only in text that {trace.tool} returned", trace.place)
        if is_destination and trace.kind is OriginKind.NOBODY and trace.is_address:
            return Finding("neither you nor a field of any output gave this address", marked=trace.text)
        if trace.kind.is_given or trace.place is None:
            continue
        asking = _asking_place(action, trace, sources, requested=requested)
        if asking is not None:
            return Finding(f"text that {asking.passage.tool} returned asks for this", asking)
        if is_text and not requested:
            return Finding(f"this appears only in text that {trace.tool} returned", trace.place)
        if is_text and trace.is_address and not is_destination:
            return Finding(f"this address appears only in text that {trace.tool} returned", trace.place)
    return None


def _asking_place(action: str, trace: Trace, sources: SourceTexts, *, requested: bool) -> TextPlace | None:
    """Return a place of a value beside an instruction, except in a document that the user named.

    The instruction may be in the sentence before, unless the value is a field, a number or a date.
    """
    is_bare = trace.kind is OriginKind.STRUCTURED or not any(map(str.isalpha, trace.text))
    places = [*sources.places_of(trace.text)] or ([trace.place] if trace.place else [])
    for place in places:
        is_named = requested and place.passage.is_named and trace.role is not ArgumentRole.DESTINATION
        if not is_named and asks_for(action, place.sentences(before=0 if is_bare else 1)):
            return place
    return None


def _is_named_person(trace: Trace, sources: SourceTexts) -> bool:
    """Return whether a mail address of a document that the user named contains a name from the user's words."""
    if trace.place is None or not trace.place.passage.is_named or "@" not in trace.text:
        return False
    names = [part for part in re.split(r"[^a-z]+", trace.text.partition("@")[0]) if len(part) > 2]
    return any(sources.user.contain(name) for name in names)


def _of_read(
    params: Mapping[str, Any], spec: ToolSpec, traces: Mapping[str, list[Trace]], sources: SourceTexts
) -> dict[str, Finding]:
    texts = {name: [str(leaf.value) for leaf in leaves(value)] for name, value in params.items()}
    if not (spec.reaches_outside or any(_points_outside(text) for parts in texts.values() for text in parts)):
        return {}
    findings = {
        name: finding
        for name, parts in texts.items()
        if (finding := _of_outbound(parts, traces.get(name, []), spec, sources))
    }
    if texts and not findings and (sources.sent or len(texts) > 1):
        leak = find_leak([without_host(text) for parts in texts.values() for text in parts], sources, together=True)
        if leak is not None:
            findings[next(iter(texts))] = leak
    return findings


def _points_outside(text: str) -> bool:
    line = plain_text(text)
    return URL.search(line) is not None or (is_address(line) and not is_mail(line))


def _of_outbound(texts: Iterable[str], traces: Iterable[Trace], spec: ToolSpec, sources: SourceTexts) -> Finding | None:
    """Return a finding if an argument of an outbound read leaks tool output or has an address of a text."""
    harmless: set[str] = set()
    for trace in traces:
        is_own = trace.kind is OriginKind.STRUCTURED and sources.is_own_field(trace.text, spec.server)
        if trace.is_address and not is_mail(trace.text):
            if finding := _of_address(trace, sources, is_own=is_own):
                return finding
            if is_own or next(sources.places_of(trace.text), None):
                harmless.add(trace.text)
        elif trace.kind is OriginKind.USER or is_own:
            harmless.add(trace.text)
    return find_leak([without_host(text) for text in texts if fold_text(text) not in harmless], sources)


def _of_address(trace: Trace, sources: SourceTexts, *, is_own: bool) -> Finding | None:
    if trace.kind is OriginKind.TEXT:
        return Finding(f"this address appears only in text that {trace.tool} returned", trace.place)
    if trace.kind is OriginKind.STRUCTURED and not is_own:
        return Finding(f"this address comes from what {trace.tool} returned", marked=trace.text)
    host = host_of(trace.text).removeprefix("www.")
    if trace.kind is not OriginKind.NOBODY or _is_known_host(host, sources):
        return None
    place = next(sources.places_of(host), None)
    if place is not None:
        return Finding(f"the host of this address appears only in text that {place.passage.tool} returned", place)
    if sources.picture:
        return Finding(f"you did not give this address: it may come from {sources.picture}", marked=trace.text)
    return None


def _is_known_host(host: str, sources: SourceTexts) -> bool:
    return not host or sources.user.contain(host) or any(host in text for text in sources.fields_by_text)
