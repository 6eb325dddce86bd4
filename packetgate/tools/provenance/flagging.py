"""Trace each value of a call to the texts that contain it, and flag the arguments that the user must see."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from packetgate.state.origins import ArgumentRole, FlowLabel, Origin, OriginKind
from packetgate.state.routing import Risk
from packetgate.tools.provenance.actions import DELEGATION, asks_for_action, instruction_span, is_removal
from packetgate.tools.provenance.flow import flow_flags
from packetgate.tools.provenance.roles import role_of, secret_reference_in
from packetgate.tools.provenance.sources import FlagReason, OutputField, SourceTexts, TextPlace
from packetgate.tools.provenance.values import (
    Leaf,
    NormalizedValue,
    addresses_in,
    find_words,
    fold_text,
    host_of,
    is_account,
    is_address,
    leaves,
    normalized_values_of,
    phrases_in,
    plain_text,
)
from packetgate.tools.provenance.workspace import WorkspaceChange, workspace_change
from packetgate.tools.risk.call import judge_call
from packetgate.tools.spec.tool_spec import ToolSpec

WHOLE_CALL = ""
"""Key of a flag for the whole call, used if the call has no argument to flag."""
_LEAST_TRUSTED_LAST = (OriginKind.USER, OriginKind.DEFAULT, OriginKind.STRUCTURED, OriginKind.NOBODY, OriginKind.TEXT)
_SEPARATOR = re.compile(r"\s*[,;\n]\s*")
_ABSENT = object()
_MAX_PARTS = 200
_HOST_CHARS = 253


@dataclass(frozen=True)
class _Trace:
    """The source of one part of an argument."""

    kind: OriginKind
    role: ArgumentRole
    text: str
    """The part, folded."""
    tool: str = ""
    place: TextPlace | None = None
    """The place of the part in free text, also if a field contains the part."""
    is_address: bool = False
    is_free_text: bool = False


def origins_of(params: Mapping[str, Any], spec: ToolSpec, sources: SourceTexts) -> dict[str, Origin]:
    """Return the origin of each argument, with the reason if it is flagged. Blocking: slow for large sources."""
    traces: dict[str, list[_Trace]] = {
        name: []
        if name in spec.derived_parameters
        else [
            trace for leaf in leaves(value, name) for trace in _traces_of(leaf, spec.parameters.get(name, {}), sources)
        ]
        for name, value in params.items()
    }
    flags = {name: reason for name, value in params.items() if (reason := _secret_reason(name, value))}
    judgement = judge_call(spec, params)
    flags = flow_flags(params, spec, sources, reads=judgement.apparent_risk is Risk.READ) | flags
    if judgement.risk is not Risk.READ:
        change = workspace_change(params, spec, sources)
        flags = (_flags_in_workspace(change, traces) if change else _flags_in_change(spec, traces, sources)) | flags
    traces = traces if WHOLE_CALL not in flags else {**traces, WHOLE_CALL: []}
    return {name: _origin_of_argument(parts, flags.get(name), spec.server) for name, parts in traces.items()}


def _origin_of_argument(traces: Iterable[_Trace], reason: FlagReason | None, server: str) -> Origin:
    parts = [*traces] or [_Trace(OriginKind.DEFAULT, ArgumentRole.OTHER, "")]
    worst = max(
        parts,
        key=lambda one: (_LEAST_TRUSTED_LAST.index(one.kind), one.is_free_text, one.tool.partition(".")[0] != server),
    )
    is_destination = any(trace.role is ArgumentRole.DESTINATION for trace in parts)
    role = ArgumentRole.DESTINATION if is_destination else worst.role
    origin = Origin(kind=worst.kind, tool=worst.tool, is_free_text=worst.is_free_text, role=role)
    if reason is None:
        return origin
    if reason.place is None:
        return origin.changed(is_flagged=True, why=reason.why, flagged_part=reason.flagged_part)
    passage, flagged_part = reason.place.quoted()
    tool = worst.tool or reason.place.source.tool
    return origin.changed(is_flagged=True, why=reason.why, passage=passage, flagged_part=flagged_part, tool=tool)


def _secret_reason(name: str, value: Any) -> FlagReason | None:
    part = secret_reference_in(value, name)
    return FlagReason(f"{part} contains keys or secrets, or configures what may run here") if part else None


def _flags_in_change(spec: ToolSpec, traces: Mapping[str, list[_Trace]], sources: SourceTexts) -> dict[str, FlagReason]:
    action = spec.upstream_name
    requested = asks_for_action(action, sources.request, spec.neighbours)
    flags = {
        name: reason
        for name, parts in traces.items()
        if (reason := _value_reason(action, parts, sources, requested=requested))
    }
    unrequested = None if requested else _unrequested_reason(action, sources)
    if unrequested is not None:
        unstated = [name for name, parts in traces.items() if any(not trace.kind.is_user_or_default for trace in parts)]
        for name in unstated or [*traces][:1] or [WHOLE_CALL]:
            flags.setdefault(name, unrequested)
    flagged = (trace for name in flags for trace in traces.get(name, ()))
    if any(trace.role is ArgumentRole.DESTINATION for trace in flagged):
        for name, parts in traces.items():
            for trace in parts:
                if trace.role is ArgumentRole.PAYLOAD and trace.place and not trace.kind.is_user_or_default:
                    why = f"it sends output of {trace.tool} to a destination that you did not state"
                    flags.setdefault(name, FlagReason(why, trace.place))
    return flags


def _flags_in_workspace(change: WorkspaceChange, traces: Mapping[str, list[_Trace]]) -> dict[str, FlagReason]:
    action, sources = change.spec.upstream_name, change.sources
    requested = asks_for_action(action, sources.request, change.spec.neighbours)
    flags = {}
    for name, parts in traces.items():
        unstated = [trace for trace in parts if not trace.kind.is_user_or_default]
        if name in change.paths:
            reason = change.path_reason(name) if unstated else None
        else:
            suspicious = [
                trace for trace in unstated if trace.place is not None and not change.is_ordinary(trace.place)
            ]
            reason = _value_reason(action, suspicious, sources, requested=requested)
        if reason:
            flags[name] = reason
    removal = None if requested else change.asks_for_removal
    if removal:
        why = f"you did not ask for this action; text that {removal.source.tool} returned asks for it"
        flags.setdefault(next(iter(change.paths)), FlagReason(why, removal))
    return flags


def _unrequested_reason(action: str, sources: SourceTexts) -> FlagReason | None:
    """Return a reason for an action that the user did not ask for, if text of third parties may have asked for it.

    A document that the user asked to follow may ask for actions, but for a removal only if it clearly does. Without own
    words of the user, only a text that clearly asks for the action is a reason.
    """
    asking = {source: span for source in sources.free_texts if (span := instruction_span(action, source.folded))}
    if DELEGATION.search(sources.user.folded) is not None:
        followed = (source for source in asking if source.is_named or source.text in sources.named_texts)
        if not is_removal(action) or any(followed):
            return None
    for source, span in asking.items():
        why = f"you did not ask for this action; text that {source.tool} returned asks for it"
        return FlagReason(why, TextPlace(source, *span))
    holder = sources.labels.get(FlowLabel.UNTRUSTED)
    if holder is None or not sources.destinations.folded:
        return None
    why = "your message does not clearly ask for this action, and the session holds text of third parties"
    return FlagReason(f"{why} (from {holder})")


def _value_reason(action: str, traces: Iterable[_Trace], sources: SourceTexts, *, requested: bool) -> FlagReason | None:
    for trace in traces:
        is_destination, is_text = trace.role is ArgumentRole.DESTINATION, trace.kind is OriginKind.TEXT
        if is_destination and is_text and not _is_named_person(trace, sources):
            return FlagReason(f"this destination appears only in text that {trace.tool} returned", trace.place)
        if (
            trace.kind is OriginKind.NOBODY
            and trace.is_address
            and (is_destination or FlowLabel.UNTRUSTED in sources.labels)
        ):
            return FlagReason(
                "this address comes neither from you nor from a field of any output", flagged_part=trace.text
            )
        if trace.kind.is_user_or_default or trace.place is None:
            continue
        is_followed = (
            trace.place.source.text in sources.named_texts and DELEGATION.search(sources.user.folded) is not None
        )
        if is_followed and not is_destination and not trace.is_address:
            continue
        asking = _asking_place(action, trace, sources, requested=requested)
        if asking is not None:
            return FlagReason(f"text that {asking.source.tool} returned asks for this action", asking)
        if is_text and not requested:
            return FlagReason(f"this value appears only in text that {trace.tool} returned", trace.place)
        if is_text and trace.is_address and not is_destination:
            return FlagReason(f"this address appears only in text that {trace.tool} returned", trace.place)
    return None


def _asking_place(action: str, trace: _Trace, sources: SourceTexts, *, requested: bool) -> TextPlace | None:
    """Return a place where the value is next to an instruction, except in a document that the user named.

    The instruction is in the same sentence or, for words that are no field, number or date, in the sentence before.
    """
    is_bare = trace.kind is OriginKind.STRUCTURED or not any(map(str.isalpha, trace.text))
    places = [*sources.places_of(trace.text)] or ([trace.place] if trace.place else [])
    for place in places:
        is_named = requested and place.source.is_named and trace.role is not ArgumentRole.DESTINATION
        if not is_named and instruction_span(action, place.sentences(before=0 if is_bare else 1)):
            return place
    return None


def _is_named_person(trace: _Trace, sources: SourceTexts) -> bool:
    """Return whether a mail address of a document that the user named contains a name from the user's words."""
    if trace.place is None or not trace.place.source.is_named or "@" not in trace.text:
        return False
    names = [part for part in re.split(r"[^a-z]+", trace.text.partition("@")[0]) if len(part) > 2]
    return any(sources.user.contain(name) for name in names)


def _traces_of(leaf: Leaf, schema: Mapping[str, Any], sources: SourceTexts) -> list[_Trace]:
    role, value = role_of(leaf.keys, schema, leaf.value), leaf.value
    is_empty = isinstance(value, str) and not value.strip()
    if is_empty or any(value == schema.get(key, _ABSENT) for key in ("default", "const")):
        return [_Trace(OriginKind.DEFAULT, role, str(value))]
    if isinstance(value, bool):
        return [_Trace(OriginKind.NOBODY, role, str(value).lower())]
    text = str(value)
    trace = _trace_text(text, role, sources)
    if trace.kind.is_user_or_default:
        return [trace]
    addresses = addresses_in(plain_text(text))
    if role is ArgumentRole.DESTINATION:
        parts = addresses or [part for part in _SEPARATOR.split(text) if part.strip()]
        if len(parts) > _MAX_PARTS:
            return [replace(trace, kind=OriginKind.NOBODY, is_address=True)]
        return [_trace_text(part, role, sources) for part in parts] if parts and parts != [text] else [trace]
    if isinstance(value, str):
        links = [_trace_text(address, role, sources) for address in addresses[:_MAX_PARTS]]
        return [_trace_phrases(trace, sources), *links]
    return [trace]


def _trace_text(text: str, role: ArgumentRole, sources: SourceTexts) -> _Trace:
    folded = fold_text(text)
    has_address = is_address(plain_text(text)) or is_account(folded)
    spellings = [folded, folded.strip(" .,;:!?\"'()<>[]")]
    if has_address:
        bare = folded.removeprefix("mailto:")
        bare = bare.partition("://")[2] or bare
        spellings += [bare, bare.rstrip("/"), bare.rstrip("/").removeprefix("www.")]
    spellings = [spelling for spelling in dict.fromkeys(spellings) if spelling]
    place = next((place for spelling in spellings if (place := _matching_place(spelling, sources))), None)
    trace = _Trace(OriginKind.NOBODY, role, folded, place=place, is_address=has_address)
    if _is_from_user(folded, spellings, role, sources):
        return replace(trace, kind=OriginKind.USER)
    field = _matching_field(folded, spellings, sources, has_address=has_address)
    if field is not None:
        return replace(trace, kind=OriginKind.STRUCTURED, tool=field.tool, is_free_text=field.is_free_text)
    if place is not None:
        return replace(trace, kind=OriginKind.TEXT, tool=place.source.tool)
    return trace


def _is_from_user(text: str, spellings: Sequence[str], role: ArgumentRole, sources: SourceTexts) -> bool:
    user, values = sources.user, normalized_values_of(text)
    has_all_values = bool(values) and all(not user.normalized_values.isdisjoint(options) for options in values)
    if has_all_values or any(map(user.contain, spellings)):
        return True
    if role is not ArgumentRole.DESTINATION or "@" in text:
        return False
    if is_address(text):
        return _names_host(host_of(text), user.folded)
    name = text.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    return len(name) > 3 and name != text and user.contain(name)


def _names_host(host: str, words: str) -> bool:
    if not host or len(host) > _HOST_CHARS:
        return False
    labels = host.removeprefix("www.").split(".")
    return any(find_words(words, ".".join(labels[at:])) >= 0 for at in range(max(1, len(labels) - 1)))


def _matching_field(
    text: str, spellings: Sequence[str], sources: SourceTexts, *, has_address: bool
) -> OutputField | None:
    for spelling in spellings:
        field = sources.fields_by_text.get(spelling)
        if field is not None and not (has_address and field.is_free_text):
            return field
    return next(
        (field for value in _first_normalized_values(text) if (field := sources.fields_by_normalized_value.get(value))),
        None,
    )


def _matching_place(text: str, sources: SourceTexts) -> TextPlace | None:
    """Return the first place where free text contains a value, in any notation."""
    first = next(sources.places_of(text), None)
    values = _first_normalized_values(text) if first is None else ()
    places = (
        TextPlace(source, *source.normalized_values[value])
        for source in sources.free_texts
        for value in values
        if value in source.normalized_values
    )
    return first or next(places, None)


def _first_normalized_values(text: str) -> tuple[NormalizedValue, ...]:
    return next(iter(normalized_values_of(text)), ())


def _trace_phrases(trace: _Trace, sources: SourceTexts) -> _Trace:
    """Return the trace; for a longer text, with the place of a phrase that it shares with free text."""
    if trace.kind is not OriginKind.NOBODY:
        return trace
    phrases = [phrase for phrase in phrases_in(trace.text) if not sources.user.contain(phrase)]
    place = _first_place(phrases, sources)
    return replace(trace, kind=OriginKind.TEXT, tool=place.source.tool, place=place) if place else trace


def _first_place(phrases: Sequence[str], sources: SourceTexts) -> TextPlace | None:
    for source in sources.free_texts:
        for phrase in phrases:
            at = find_words(source.folded, phrase)
            if at >= 0:
                return TextPlace(source, at, at + len(phrase))
    return None
