"""Which arguments of a call the user must see before it runs, and why."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from packetgate.state.origins import ArgumentRole, Origin, OriginKind
from packetgate.state.routing import Risk
from packetgate.tools.provenance.actions import asks_for, calls_for, commanded, delegates
from packetgate.tools.provenance.evidence import Evidence
from packetgate.tools.provenance.leaving import Carried, carried
from packetgate.tools.provenance.roles import sensitive_part
from packetgate.tools.provenance.tracing import Place, Trace, places_of, traces_of
from packetgate.tools.provenance.values import URL, beside_host, folded, host_of, is_address, is_mail, leaves, plain
from packetgate.tools.risk.call import judge_call
from packetgate.tools.spec.tool_spec import ToolSpec

THE_CALL = ""
"""Stands for the call as a whole, where no argument of it is to blame."""


@dataclass(frozen=True)
class Alarm:
    """Why an argument is loud, and the passage that it is about."""

    why: str
    place: Place | None = None
    marked: str = ""


def origins_of(params: Mapping[str, Any], spec: ToolSpec, evidence: Evidence) -> dict[str, Origin]:
    """Return the origin of each argument. Blocking: its time grows with the texts that are known."""
    traced = {
        name: [one for leaf in leaves(value, name) for one in traces_of(leaf, spec.parameters.get(name, {}), evidence)]
        for name, value in params.items()
    }
    alarms = {name: _sensitive(name, value) for name, value in params.items()}
    judged = judge_call(spec, params)
    found = [_of_read(params, spec, traced, evidence)] if judged.looks is Risk.READ else []
    found += [_of_change(spec, traced, evidence)] if judged.risk is not Risk.READ else []
    for name, one in (item for alarm in found for item in alarm.items()):
        alarms[name] = alarms.get(name) or one
    origins = {name: _origin(traces, alarms.get(name), spec.server) for name, traces in traced.items()}
    if THE_CALL in alarms:
        origins[THE_CALL] = _origin([], alarms[THE_CALL], spec.server)
    return origins


def _origin(traces: Iterable[Trace], alarm: Alarm | None, server: str) -> Origin:
    parts = [*traces] or [Trace(OriginKind.DEFAULT, ArgumentRole.OTHER, "")]
    worst = max(parts, key=lambda one: (one.badness, one.worded, one.tool.partition(".")[0] != server))
    role = ArgumentRole.DESTINATION if any(one.role is ArgumentRole.DESTINATION for one in parts) else worst.role
    known: dict[str, Any] = {"kind": worst.kind, "tool": worst.tool, "worded": worst.worded, "role": role}
    if alarm is None:
        return Origin(**known)
    known |= {"loud": True, "why": alarm.why}
    if alarm.place is None:
        return Origin(marked=alarm.marked, **known)
    sentence, marked = alarm.place.passage.sentence(alarm.place.start, alarm.place.end)
    known["tool"] = worst.tool or alarm.place.passage.tool
    return Origin(sentence=sentence, marked=marked, **known)


def _sensitive(name: str, value: Any) -> Alarm | None:
    part = sensitive_part(value, name)
    return Alarm(f"{part} holds keys or secrets, or says what may run here") if part else None


def _of_change(spec: ToolSpec, traced: Mapping[str, list[Trace]], evidence: Evidence) -> dict[str, Alarm]:
    """Return what is loud in a call that changes something."""
    name, said = spec.upstream_name, evidence.user.folded
    wanted = calls_for(name, said)
    found = {
        one: alarm for one, traces in traced.items() if (alarm := _of_value(name, traces, evidence, wanted=wanted))
    }
    order = None if wanted else _order(name, evidence)
    if order is not None:
        why = f"you did not ask for this; text that {order.passage.tool} returned does"
        blamed = [one for one, traces in traced.items() if any(not trace.kind.is_given for trace in traces)]
        for one in blamed or [*traced][:1] or [THE_CALL]:
            found.setdefault(one, Alarm(why, order))
    if any(one.role is ArgumentRole.DESTINATION for parameter in found for one in traced.get(parameter, ())):
        for parameter, traces in traced.items():
            carries = [
                one for one in traces if one.role is ArgumentRole.PAYLOAD and one.place and not one.kind.is_given
            ]
            for content in carries[:1]:
                why = f"it takes what {content.tool} returned to a destination that you did not name"
                found.setdefault(parameter, Alarm(why, content.place))
    return found


def _order(name: str, evidence: Evidence) -> Place | None:
    """Return where free text orders what such a tool does, unless the user said to follow that document."""
    told = delegates(evidence.user.folded)
    for passage in evidence.passages:
        at = commanded(name, passage.folded) if not (told and passage.is_named) else None
        if at:
            return Place(passage, *at)
    return None


def _of_value(name: str, traces: Iterable[Trace], evidence: Evidence, *, wanted: bool) -> Alarm | None:
    for one in traces:
        if one.role is ArgumentRole.DESTINATION and one.kind is OriginKind.TEXT and not _is_pointed_at(one, evidence):
            return Alarm(f"this destination stands only in text that {one.tool} returned", one.place)
        if one.role is ArgumentRole.DESTINATION and one.kind is OriginKind.NOBODY and one.is_address:
            return Alarm("neither you nor a field of any output gave this address", marked=one.said)
        if one.kind.is_given or one.place is None:
            continue
        asking = _asking(name, one, evidence, wanted=wanted)
        if asking is not None:
            return Alarm(f"text that {asking.passage.tool} returned asks for this", asking)
        if one.kind is OriginKind.TEXT and not wanted:
            return Alarm(f"this stands only in text that {one.tool} returned", one.place)
        if one.kind is OriginKind.TEXT and one.is_address and one.role is not ArgumentRole.DESTINATION:
            return Alarm(f"this address stands only in text that {one.tool} returned", one.place)
    return None


def _asking(name: str, trace: Trace, evidence: Evidence, *, wanted: bool) -> Place | None:
    """Return where a value stands beside an order to do this, other than in a document that the user named for it.

    What is more than a number or a date of free text may stand in the sentence after the order.
    """
    bare = trace.kind is OriginKind.STRUCTURED or not any(map(str.isalpha, trace.said))
    places = [*places_of(trace.said, evidence)] or ([trace.place] if trace.place else [])
    for at in places:
        named = wanted and at.passage.is_named and trace.role is not ArgumentRole.DESTINATION
        if not named and asks_for(name, at.passage.around(at.start, at.end, before=0 if bare else 1)):
            return at
    return None


def _is_pointed_at(trace: Trace, evidence: Evidence) -> bool:
    """Whether a mail address stands in a document that the user named, and bears a name that they said."""
    if trace.place is None or not trace.place.passage.is_named or "@" not in trace.said:
        return False
    names = [part for part in re.split(r"[^a-z]+", trace.said.partition("@")[0]) if len(part) > 2]
    return any(evidence.user.say(name) for name in names)


def _of_read(
    params: Mapping[str, Any], spec: ToolSpec, traced: Mapping[str, list[Trace]], evidence: Evidence
) -> dict[str, Alarm]:
    """Return what is loud in a call that reads, where it reaches outside."""
    found: dict[str, Alarm] = {}
    texts = {name: [str(leaf.value) for leaf in leaves(value)] for name, value in params.items()}
    outside = spec.reaches_outside or any(map(_points_outside, (one for said in texts.values() for one in said)))
    if not outside:
        return found
    for name, said in texts.items():
        alarm = _of_sent(said, traced.get(name, []), spec, evidence)
        if alarm is not None:
            found[name] = alarm
    if texts and not found and (evidence.sent or len(texts) > 1):
        together = carried([beside_host(one) for said in texts.values() for one in said], evidence, together=True)
        if together is not None:
            found[next(iter(texts))] = _leaks(together)
    return found


def _points_outside(text: str) -> bool:
    said = plain(text)
    return URL.search(said) is not None or (is_address(said) and not is_mail(said))


def _of_sent(said: Iterable[str], traces: Iterable[Trace], spec: ToolSpec, evidence: Evidence) -> Alarm | None:
    """Return why what one argument of a read takes outside is loud."""
    free: set[str] = set()
    for one in traces:
        if one.is_address and not is_mail(one.said):
            whole_of_own = one.kind is OriginKind.STRUCTURED and evidence.is_own_field(one.said, spec.server)
            if one.kind is OriginKind.TEXT:
                return Alarm(f"this address stands only in text that {one.tool} returned", one.place)
            if one.kind is OriginKind.STRUCTURED and not whole_of_own:
                return Alarm(f"this address comes from what {one.tool} returned", marked=one.said)
            if one.kind is OriginKind.NOBODY and (place := _host_in_text(one.said, evidence)):
                return Alarm(f"the host of this address stands only in text that {place.passage.tool} returned", place)
            if one.kind is OriginKind.NOBODY and evidence.picture and not _names(_host(one.said), evidence):
                return Alarm(f"you did not give this address: it may stand in {evidence.picture}", marked=one.said)
            if whole_of_own or evidence.links_to(one.said):
                free.add(one.said)
        elif one.kind is OriginKind.USER or (
            one.kind is OriginKind.STRUCTURED and evidence.is_own_field(one.said, spec.server)
        ):
            free.add(one.said)
    sent = [beside_host(text) for text in said if folded(text) not in free]
    leak = carried(sent, evidence)
    return _leaks(leak) if leak else None


def _host_in_text(address: str, evidence: Evidence) -> Place | None:
    """Return where an address's host stands in free text, if neither the user nor any field names it."""
    host = _host(address)
    return None if _names(host, evidence) else next(places_of(host, evidence), None)


def _host(address: str) -> str:
    return host_of(address).removeprefix("www.")


def _names(host: str, evidence: Evidence) -> bool:
    """Whether the user or a field of some output names a host."""
    return not host or evidence.user.say(host) or any(host in text for text in evidence.fields_by_text)


def _leaks(found: Carried) -> Alarm:
    place = Place(found.passage, found.start, found.end) if found.passage else None
    return Alarm(f"it carries outside what {found.tool} returned", place, found.said)
