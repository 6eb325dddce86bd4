"""Origins of arguments, written as words: `user`, `nobody`, `text:mail.read`."""

from collections.abc import Mapping

from packetgate.state.origins import Origin, OriginKind


def words(provenance: Mapping[str, Origin]) -> dict[str, str]:
    """Return each argument's origin."""
    return {name: f"{one.kind}:{one.tool}" if one.tool else one.kind.value for name, one in provenance.items()}


def origins(**written: str) -> dict[str, Origin]:
    """Return the origins that words stand for."""
    parts = {name: word.partition(":") for name, word in written.items()}
    return {name: Origin(kind=OriginKind(kind), tool=tool) for name, (kind, _, tool) in parts.items()}
