"""Flag arguments that send a call to a host that nobody named, or that carry data out of a labelled session.

A session is labelled once it holds text of third parties or private data. Its outward reads may then reach only hosts
that the user's words, the configuration, or a whole field of a search result name. If it holds private data, they may
carry only the user's words. Every other value is flagged, however it is written.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from packetgate.gate.provenance.sources import FlagReason, SourceTexts
from packetgate.state.origins import FlowLabel
from packetgate.tools.spec.hosts import fits_host, host_in
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.roles import names_address
from packetgate.tools.text.values import addresses_in, fold_text, is_address, is_mail, keys_in, leaves, plain_text
from packetgate.tools.text.words import words_of

_COUNTERS = frozenset(
    "count depth first index length limit max maximum num offset page pages per results size skip start top".split()
)
_MAX_COUNT = 1_000_000
_AUTHORITY_END = re.compile(r"[/?#]")
_PORT = re.compile(r":(?!80$|443$)(\d+)$")
_LOCAL_FILE = re.compile(r"file:///[^/\\]", re.IGNORECASE)
_NETWORK_PATH = re.compile(r"file://(?!/[^/\\])|[/\\]{2}", re.IGNORECASE)
"""A path that reaches another machine on some systems, such as `//host/share` and its form with backslashes."""
_ABSENT = object()


class _Value(NamedTuple):
    """A text or number in the arguments."""

    parameter: str
    text: str
    is_target: bool
    """Whether the call may go to this address."""
    is_count: bool
    """Whether it is a small or round number of results, pages or characters, which carries little."""


def flow_flags(
    params: Mapping[str, Any], spec: ToolSpec, sources: SourceTexts, *, reads: bool
) -> dict[str, FlagReason]:
    """Return the reason for each argument that names a host, or carries data, that needs the user's approval."""
    values = [value for name, argument in params.items() for value in _values_in(name, argument, spec)]
    targets = [value for value in values if value.is_target]
    is_outward = spec.reaches_outside or bool(targets) if spec.outward is None else spec.outward
    is_outward = is_outward or any(_NETWORK_PATH.match(value.text) for value in targets)
    flags: dict[str, FlagReason] = {}
    for value in targets:
        if spec.hosts is not None and not fits_host(host_in(value.text), spec.hosts):
            flags.setdefault(value.parameter, _unlisted_reason(value.text, spec))
    if not is_outward or not sources.labels:
        return flags
    # other arguments may complete an address that has no scheme
    is_split = any("://" not in value.text for value in targets)
    carries_freely = bool(spec.hosts) and not targets
    for value in values:
        reason = _host_reason(value, spec, sources, reads=reads)
        if reason is None and reads and not carries_freely and (FlowLabel.PRIVATE in sources.labels or is_split):
            reason = _carried_reason(value, spec, sources)
        if reason is not None:
            flags.setdefault(value.parameter, reason)
    return flags


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
        is_link = "://" in text or _NETWORK_PATH.match(text) is not None or is_address(plain_text(text))
        is_link = is_link and not _LOCAL_FILE.match(text)
        is_target = not is_mail(text) and (is_link or names_address(leaf.keys, schema))
        is_round = isinstance(leaf.value, int) and 0 <= leaf.value <= _MAX_COUNT and len(text.rstrip("0")) <= 2
        yield _Value(name, text, is_target, is_round and bool(_COUNTERS & {*words_of(leaf.keys[-1])}))


def _host_reason(value: _Value, spec: ToolSpec, sources: SourceTexts, *, reads: bool) -> FlagReason | None:
    """Return a reason if a value names a host, or may name one, and nobody else named this host."""
    texts = [value.text] if value.is_target else addresses_in(plain_text(value.text)) if reads else []
    for text in texts:
        if not is_mail(text) and not _is_stated(text, spec, sources, reads=reads):
            host = host_in(text)
            if not (sources.destinations.domain_of(host) or fits_host(host, spec.hosts or ())):
                return _unnamed_reason(text, host, spec, sources)
    return None


def _is_stated(text: str, spec: ToolSpec, sources: SourceTexts, *, reads: bool) -> bool:
    """Return whether the user, or a field that may name a destination, states a whole value."""
    if sources.destinations.state(text) or sources.is_listed(text, spec.server):
        return True
    field = sources.fields_by_value.get(fold_text(text))
    if field is None or field.is_free_text:
        return False
    return not reads or (sources.is_server_field(field.text, spec.server) and not is_address(plain_text(text)))


def _carried_reason(value: _Value, spec: ToolSpec, sources: SourceTexts) -> FlagReason | None:
    """Return a reason if a value carries more than the user's words to a host that is not in the configuration."""
    words = sources.destinations
    if value.is_count or _is_stated(value.text, spec, sources, reads=True):
        return None
    carried = [value.text]
    if value.is_target:
        host = host_in(value.text)
        if fits_host(host, spec.hosts or ()):
            return None
        subdomain = host.removesuffix(words.domain_of(host)).removeprefix("www.")
        address = value.text.partition("://")[2] or value.text
        authority, *path = _AUTHORITY_END.split(address, maxsplit=1)
        port = _PORT.search(authority)
        carried = [subdomain, port[1] if port else "", *path]
    if all(map(words.cover, carried)):
        return None
    place = next(sources.places_of(fold_text(value.text)), None)
    why = (
        f"it sends words outside that are not yours, and {_labels_text(sources)}; use these words in your request, or "
        f"set `hosts` of server {spec.server} in mcp.json"
    )
    return FlagReason(why, place, "" if place else fold_text(value.text)[:200])


def _unlisted_reason(text: str, spec: ToolSpec) -> FlagReason:
    why = f"its host is not among the `hosts` of server {spec.server} in mcp.json; add it there if calls may go to it"
    return FlagReason(why, flagged_part=fold_text(text)[:200])


def _unnamed_reason(text: str, host: str, spec: ToolSpec, sources: SourceTexts) -> FlagReason:
    folded = fold_text(text)
    place = next(sources.places_of(folded), None)
    field = sources.fields_by_value.get(folded)
    if place is not None:
        cause = f"this address appears only in text that {place.source.tool} returned"
    elif field is not None:
        cause = f"this address comes from output of {field.tool}"
    elif not host:
        cause = "it is not certain which host this is"
    elif (place := next(sources.places_of(host.removeprefix("www.")), None)) is not None:
        cause = f"the host of this address appears only in text that {place.source.tool} returned"
    elif sources.picture:
        cause = f"you did not state this address: a model may have read it in {sources.picture}"
    else:
        cause = "you did not name this host"
    why = f"{cause}, and {_labels_text(sources)}; {_way_out(spec)}"
    return FlagReason(why, place, "" if place else folded[:200])


def _labels_text(sources: SourceTexts) -> str:
    held = " and ".join(f"{label.meaning} (from {source})" for label, source in sources.labels.items())
    return f"the session holds {held}"


def _way_out(spec: ToolSpec) -> str:
    return f"name the host in your request, or add it to `hosts` of server {spec.server} in mcp.json"
