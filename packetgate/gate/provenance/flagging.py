"""Trace each value of a call to the texts that contain it, and flag the arguments that the user must see."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from packetgate.gate.provenance.actions import DELEGATION, asks_for_action, instruction_span, is_removal
from packetgate.gate.provenance.sources import FlagReason, SourceTexts, TextPlace
from packetgate.gate.provenance.workspace import WorkspaceChange, workspace_change
from packetgate.state.origins import ArgumentRole, FlowLabel, Origin, OriginKind
from packetgate.state.routing import Risk
from packetgate.tools.risk.call import judge_call
from packetgate.tools.spec.tool_spec import CallHints, ToolSpec
from packetgate.tools.text.hosts import fits_host, host_in, names_machine
from packetgate.tools.text.named_paths import words_for_path
from packetgate.tools.text.roles import names_address, role_of, secret_reference_in
from packetgate.tools.text.values import (
    Leaf,
    NormalizedValue,
    addresses_in,
    find_words,
    fold_text,
    is_account,
    is_address,
    is_mail,
    keys_in,
    leaves,
    normalized_values_of,
    phrases_in,
    plain_text,
)
from packetgate.tools.text.words import words_of

WHOLE_CALL = ""
"""Key of a flag for the whole call, used if the call has no argument to flag."""
_LEAST_TRUSTED_LAST = (OriginKind.USER, OriginKind.DEFAULT, OriginKind.STRUCTURED, OriginKind.NOBODY, OriginKind.TEXT)
_SEPARATOR = re.compile(r"\s*[,;\n]\s*")
_ABSENT = object()
_COUNTERS = frozenset(
    "count depth first index length limit max maximum num offset page pages per results size skip start top".split()
)
_MAX_COUNT = 1_000_000
_LOCAL_FILE = re.compile(r"file:///[^/\\]", re.IGNORECASE)
_MAX_PARTS = 200


@dataclass(frozen=True)
class _Trace:
    """The source of one part of an argument."""

    kind: OriginKind
    role: ArgumentRole
    spellings: tuple[str, ...]
    """The spellings to search for, folded."""
    tool: str = ""
    place: TextPlace | None = None
    """The place of the part in free text, even if a field contains the part."""
    is_address: bool = False
    is_free_text: bool = False


def origins_of(
    params: Mapping[str, Any], spec: ToolSpec, sources: SourceTexts, hints: CallHints | None = None
) -> dict[str, Origin]:
    """Return the origin of each argument, with the reason if it is flagged. Blocking: slow for large sources."""
    judgement = judge_call(spec, params, hints)
    is_outside = spec.reaches_outside or (hints is not None and hints.open_world)
    flags = _flow_flags(params, spec, sources, reads=judgement.apparent_risk is Risk.READ, reaches_outside=is_outside)
    for name, value in params.items():
        if part := secret_reference_in(value, name):
            flags[name] = FlagReason(f"{part} contains keys or secrets, or configures what may run here")
    change = None if judgement.risk is Risk.READ else workspace_change(params, spec)
    evidence = change.suspicious(spec.upstream_name, sources) if change else sources
    traces: dict[str, list[_Trace]] = {name: [] for name in params}
    for name, value in params.items():
        schema, paths = spec.parameters.get(name, {}), change.paths.get(name, {}) if change else {}
        for leaf in () if name in spec.derived_parameters else leaves(value, name):
            traces[name] += _traces_of(leaf, schema, evidence, paths)
    if judgement.risk is Risk.READ:
        traces = {name: [_as_named(trace, sources) for trace in parts] for name, parts in traces.items()}
    else:
        flags = _change_flags(spec, traces, evidence, change) | flags
    traces = traces if WHOLE_CALL not in flags else {**traces, WHOLE_CALL: []}
    return {name: _origin_of_argument(parts, flags.get(name), spec.server) for name, parts in traces.items()}


def _origin_of_argument(traces: Iterable[_Trace], reason: FlagReason | None, server: str) -> Origin:
    parts = [*traces] or [_Trace(OriginKind.DEFAULT, ArgumentRole.OTHER, ())]
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


def _change_flags(
    spec: ToolSpec, traces: Mapping[str, list[_Trace]], sources: SourceTexts, change: WorkspaceChange | None
) -> dict[str, FlagReason]:
    requested = asks_for_action(spec.upstream_name, sources.request, spec.neighbours)
    flags = {
        name: reason
        for name, parts in traces.items()
        for reason in [_value_reason(spec, parts, sources, change, requested=requested)]
        if reason
    }
    unrequested = None if requested else _unrequested_reason(spec, sources, change)
    if unrequested is not None:
        unstated = [name for name, parts in traces.items() if any(not trace.kind.is_user_or_default for trace in parts)]
        for name in unstated or [*traces][:1] or [WHOLE_CALL]:
            flags.setdefault(name, unrequested)
    if any(trace.role is ArgumentRole.DESTINATION for name in flags for trace in traces.get(name, ())):
        for name, trace in ((name, trace) for name, parts in traces.items() for trace in parts):
            if trace.role is ArgumentRole.PAYLOAD and trace.place and not trace.kind.is_user_or_default:
                why = f"it sends output of {trace.tool} to a destination that you did not state"
                flags.setdefault(name, FlagReason(why, trace.place))
    return flags


def _unrequested_reason(spec: ToolSpec, sources: SourceTexts, change: WorkspaceChange | None) -> FlagReason | None:
    """Return a reason for an action that the user did not ask for, if third-party text may have asked for it.

    A document that the user asked to follow may ask for actions; it must ask clearly for a removal. Without words of
    the user, only a text that clearly asks for the action is a reason. In the workspace, only a text that asks for a
    removal, or for an undo (whose paths nobody names), is a reason.
    """
    action = spec.upstream_name
    if change and not (is_removal(action) or spec.derived_parameters):
        return None
    asking = {source: span for source in sources.free_texts if (span := instruction_span(action, source.folded))}
    delegates = DELEGATION.search(sources.user.folded) is not None
    if delegates and (not is_removal(action) or any(one.is_named or one.text in sources.named_texts for one in asking)):
        return None
    for source, span in asking.items():
        why = f"you did not ask for this action; text that {source.tool} returned asks for it"
        return FlagReason(why, TextPlace(source, *span))
    holder = sources.labels.get(FlowLabel.UNTRUSTED)
    if change or holder is None or not sources.destinations.folded:
        return None
    why = "your message does not clearly ask for this action, and the session contains text of third parties"
    return FlagReason(f"{why} (from {holder})")


def _value_reason(
    spec: ToolSpec,
    traces: Iterable[_Trace],
    sources: SourceTexts,
    change: WorkspaceChange | None,
    *,
    requested: bool,
) -> FlagReason | None:
    for trace in traces:
        is_destination, is_text = trace.role is ArgumentRole.DESTINATION, trace.kind is OriginKind.TEXT
        if is_destination and is_text and not _is_named_person(trace, sources):
            return FlagReason(f"this destination appears only in text that {trace.tool} returned", trace.place)
        if (
            change is None
            and trace.kind is OriginKind.NOBODY
            and trace.is_address
            and (is_destination or FlowLabel.UNTRUSTED in sources.labels)
        ):
            why = "this address comes neither from you nor from a field of any output"
            return FlagReason(why, flagged_part=trace.spellings[0])
        if trace.kind.is_user_or_default or trace.place is None:
            continue
        source = trace.place.source
        is_followed = source.text in sources.named_texts and DELEGATION.search(sources.user.folded)
        if is_followed and not is_destination and not trace.is_address:
            continue
        if change and not is_destination and change.is_ordinary(source):
            continue
        asking = _asking_place(spec.upstream_name, trace, sources, requested=requested)
        if asking is not None:
            return FlagReason(f"text that {asking.source.tool} returned asks for this action", asking)
        is_own_server = change is not None and source.tool.partition(".")[0] == spec.server
        if is_text and not requested and not is_own_server:
            return FlagReason(f"this value appears only in text that {trace.tool} returned", trace.place)
        if is_text and trace.is_address and not is_destination and not is_own_server:
            return FlagReason(f"this address appears only in text that {trace.tool} returned", trace.place)
    return None


def _asking_place(action: str, trace: _Trace, sources: SourceTexts, *, requested: bool) -> TextPlace | None:
    """Return a place where the value is in the sentence of an instruction, except in a document that the user named."""
    for place in [*sources.places_of(*trace.spellings)] or [place for place in [trace.place] if place]:
        is_named = requested and place.source.is_named and trace.role is not ArgumentRole.DESTINATION
        if not is_named and instruction_span(action, place.sentence):
            return place
    return None


def _is_named_person(trace: _Trace, sources: SourceTexts) -> bool:
    """Return whether a mail address of a document that the user named contains a name from the user's words."""
    text = trace.spellings[0]
    if trace.place is None or not trace.place.source.is_named or "@" not in text:
        return False
    return any(len(name) > 2 and sources.user.contain(name) for name in re.split(r"[^a-z]+", text.partition("@")[0]))


def _traces_of(
    leaf: Leaf, schema: Mapping[str, Any], sources: SourceTexts, paths: Mapping[str, tuple[str, ...]]
) -> list[_Trace]:
    """Return the traces of a leaf's parts; `paths` holds the names of each path of a change in the workspace."""
    if isinstance(leaf.value, str) and leaf.value in paths:
        return [_trace_text(leaf.value, ArgumentRole.DESTINATION, sources, paths[leaf.value])]
    role, value = role_of(leaf.keys, schema, leaf.value), leaf.value
    is_empty = isinstance(value, str) and not value.strip()
    if is_empty or any(value == schema.get(key, _ABSENT) for key in ("default", "const")):
        return [_Trace(OriginKind.DEFAULT, role, ())]
    if isinstance(value, bool):
        return [_Trace(OriginKind.NOBODY, role, (str(value).lower(),))]
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
    links = [_trace_text(address, role, sources) for address in addresses[:_MAX_PARTS]]
    return [_trace_phrases(trace, sources), *links]


def _trace_text(text: str, role: ArgumentRole, sources: SourceTexts, names: Iterable[str] = ()) -> _Trace:
    folded = fold_text(text)
    has_address = is_address(plain_text(text)) or is_account(folded)
    spellings = [folded, folded.strip(" .,;:!?\"'()<>[]")]
    if has_address:
        bare = folded.removeprefix("mailto:")
        bare = bare.partition("://")[2] or bare
        spellings += [bare, bare.rstrip("/"), bare.rstrip("/").removeprefix("www.")]
    searched = tuple(names) or tuple(spelling for spelling in dict.fromkeys(spellings) if spelling)
    values = normalized_values_of(folded)
    place = next(sources.places_of(*searched), None) or next(sources.places_of_values(*values[:1]), None)
    trace = _Trace(OriginKind.NOBODY, role, searched, place=place, is_address=has_address)
    if _is_from_user(folded, (folded, *searched), role, sources):
        return replace(trace, kind=OriginKind.USER)
    keys: list[str | NormalizedValue] = [*searched, *(values[0] if values else ())]
    fields = map(sources.fields_by_value.get, keys)
    field = next((one for one in fields if one and not (has_address and one.is_free_text)), None)
    if field is not None:
        return replace(trace, kind=OriginKind.STRUCTURED, tool=field.tool, is_free_text=field.is_free_text)
    return replace(trace, kind=OriginKind.TEXT, tool=place.source.tool) if place else trace


def _is_from_user(text: str, spellings: Iterable[str], role: ArgumentRole, sources: SourceTexts) -> bool:
    user = sources.user
    if user.state(text) or any(map(user.contain, spellings)):
        return True
    if role is not ArgumentRole.DESTINATION or "@" in text:
        return False
    if is_address(text):
        return bool(user.domain_of(host_in(text)))
    name = text.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    return len(name) > 3 and name != text and user.contain(name)


def _as_named(trace: _Trace, sources: SourceTexts) -> _Trace:
    """Return the trace of a read's value; a path that the user names, such as `the server log`, is the user's."""
    is_unstated_path = trace.kind is OriginKind.NOBODY and trace.role is ArgumentRole.DESTINATION
    is_named = is_unstated_path and not trace.is_address and words_for_path(trace.spellings[0], sources.user.text)
    return replace(trace, kind=OriginKind.USER) if is_named else trace


def _trace_phrases(trace: _Trace, sources: SourceTexts) -> _Trace:
    """Return the trace; for a longer text, add the place of a phrase that free text also contains."""
    if trace.kind is not OriginKind.NOBODY:
        return trace
    phrases = [phrase for phrase in phrases_in(trace.spellings[0]) if not sources.user.contain(phrase)]
    for source in sources.free_texts:
        for phrase in phrases:
            at = find_words(source.folded, phrase)
            if at >= 0:
                place = TextPlace(source, at, at + len(phrase))
                return replace(trace, kind=OriginKind.TEXT, tool=source.tool, place=place)
    return trace


class _Value(NamedTuple):
    """A text or number in the arguments."""

    parameter: str
    text: str
    is_target: bool
    """Whether the call may go to this address."""
    is_count: bool
    """Whether it is a small or round number of results, pages or characters, which carries little information."""


def _flow_flags(
    params: Mapping[str, Any], spec: ToolSpec, sources: SourceTexts, *, reads: bool, reaches_outside: bool
) -> dict[str, FlagReason]:
    """Return the reason for each argument that sends a call to a host that nobody named, or that carries data outside.

    A session is labelled after it has received third-party text or private data. Then, reads that reach outside may
    access only hosts that the user's words, the configuration, or a whole field of a search result name. If the session
    contains private data, these reads may send only the user's words. Every other value is flagged, in any spelling.
    """
    values = [value for name, argument in params.items() for value in _values_in(name, argument, spec)]
    targets = [value for value in values if value.is_target]
    reaches_outside = reaches_outside or bool(targets) if spec.outward is None else spec.outward
    reaches_outside = reaches_outside or any(names_machine(value.text) for value in targets)
    flags: dict[str, FlagReason] = {}
    for value in targets:
        if spec.hosts is not None and not fits_host(host_in(value.text), spec.hosts):
            why = f"its host is not among the `hosts` of server {spec.server} in mcp.json"
            why = f"{why}; add it there if calls may go to it"
            flags.setdefault(value.parameter, FlagReason(why, flagged_part=fold_text(value.text)[:200]))
    if not reaches_outside or not sources.labels:
        return flags
    # other arguments may complete an address that has no scheme
    is_split = any("://" not in value.text for value in targets)
    carries_freely = bool(spec.hosts) and not targets
    is_bounded = reads and not carries_freely and (FlowLabel.PRIVATE in sources.labels or is_split)
    sent = [value for value in values if is_bounded and _sends_words(value.text, sources, is_service=not targets)]
    for value in values:
        reason = _host_reason(value, spec, sources, reads=reads)
        if reason is None and is_bounded and value not in sent:
            reason = _carried_reason(value, spec, sources)
        if reason is not None:
            flags.setdefault(value.parameter, reason)
    texts = [value.text for value in sent]
    repeated = len(texts) - len({*texts})
    if sent and not flags and len({*texts, *_sent_before(sources)}) + repeated > sources.destinations.max_sent:
        why = f"calls of this session have sent your words outside {sources.destinations.max_sent} times"
        why = f"{why}, which could carry other data, and {_labels_text(sources)}"
        flags[sent[-1].parameter] = FlagReason(why, flagged_part=fold_text(sent[-1].text)[:200])
    return flags


def _sends_words(text: str, sources: SourceTexts, *, is_service: bool) -> bool:
    """Return whether a value is not just an address, and is words of the user in a form that may be sent outside.

    If the call is to a server's own service (`is_service`), the words may have other forms.
    """
    words = sources.destinations
    if words.is_whole_address(text):
        return False
    is_path = text.startswith("/") and words.write_path(text[1:])
    is_address = words.name_address(text) or words.write_address(text)
    return is_address or words.write(text) or is_path or (is_service and words.rephrase(text))


def _sent_before(sources: SourceTexts) -> Iterator[str]:
    """Yield the values made of the user's words that earlier calls of the session sent outside without approval."""
    for call in sources.earlier:
        if call.open_world and not call.is_flagged:
            texts = (leaf.value for leaf in leaves(call.params) if isinstance(leaf.value, str))
            yield from (text for text in texts if _sends_words(text, sources, is_service=True))


def _values_in(name: str, argument: Any, spec: ToolSpec) -> Iterator[_Value]:
    """Yield the values of an argument that the call chooses freely."""
    schema = spec.parameters.get(name, {})
    items = schema.get("items")
    choices = schema.get("enum") or (items.get("enum") if isinstance(items, dict) else None) or []
    fixed = ["", schema.get("default", _ABSENT), schema.get("const", _ABSENT), *choices]
    declared = {*keys_in(schema)}
    for key in keys_in(argument):
        if key and key not in declared:
            yield _Value(name, key, "://" in key, is_count=False)
    for leaf in leaves(argument, name):
        if isinstance(leaf.value, bool) or leaf.value in fixed:
            continue
        text = str(leaf.value)
        is_link = "://" in text or names_machine(text) or is_address(plain_text(text))
        is_link = is_link and not _LOCAL_FILE.match(text)
        is_target = not is_mail(text) and (is_link or names_address(leaf.keys, schema))
        is_round = isinstance(leaf.value, int) and 0 <= leaf.value <= _MAX_COUNT and len(text.rstrip("0")) <= 2
        yield _Value(name, text, is_target, is_round and bool(_COUNTERS & {*words_of(leaf.keys[-1])}))


def _host_reason(value: _Value, spec: ToolSpec, sources: SourceTexts, *, reads: bool) -> FlagReason | None:
    """Return a reason if a value names, or may name, a host that neither the user nor an allowed source named."""
    texts = [value.text] if value.is_target else addresses_in(plain_text(value.text)) if reads else []
    for text in texts:
        if not is_mail(text) and not _is_stated(text, spec, sources, reads=reads):
            host = host_in(text)
            if not (sources.destinations.domain_of(host) or fits_host(host, spec.hosts or ())):
                place, field = _first_place(text, sources), sources.fields_by_value.get(fold_text(text))
                cause = "you did not name this host"
                if place is not None:
                    cause = f"this address appears only in text that {place.source.tool} returned"
                elif field is not None:
                    cause = f"this address comes from output of {field.tool}"
                way_out = f"name the host in your request, or add it to `hosts` of server {spec.server} in mcp.json"
                why = f"{cause}, and {_labels_text(sources)}; {way_out}"
                return FlagReason(why, place, fold_text(text)[:200])
    return None


def _is_stated(text: str, spec: ToolSpec, sources: SourceTexts, *, reads: bool) -> bool:
    """Return whether the user, or a field that may name a destination, states a whole value."""
    if sources.destinations.write(text) or sources.is_listed(text, spec.server):
        return True
    field = sources.fields_by_value.get(fold_text(text))
    if field is None or field.is_free_text:
        return False
    return not reads or (sources.is_server_field(field.text, spec.server) and not is_address(plain_text(text)))


def _carried_reason(value: _Value, spec: ToolSpec, sources: SourceTexts) -> FlagReason | None:
    """Return a reason if a call sends a value that is not the user's words to a host that is not in the
    configuration."""
    if value.is_count or _is_stated(value.text, spec, sources, reads=True):
        return None
    is_named = sources.destinations.is_whole_address(value.text) or fits_host(host_in(value.text), spec.hosts or ())
    if value.is_target and is_named:
        return None
    why = (
        f"it sends words outside that are not yours, and {_labels_text(sources)}; use these words in your request, or "
        f"set `hosts` of server {spec.server} in mcp.json"
    )
    return FlagReason(why, _first_place(value.text, sources), fold_text(value.text)[:200])


def _labels_text(sources: SourceTexts) -> str:
    held = " and ".join(f"{label.meaning} (from {source})" for label, source in sources.labels.items())
    return f"the session contains {held}"


def _first_place(text: str, sources: SourceTexts) -> TextPlace | None:
    return next(sources.places_of(fold_text(text)), None)
