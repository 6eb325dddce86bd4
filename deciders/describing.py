"""What a selection gets that asks for the full description of tools before it chooses."""

from collections.abc import Iterable, Sequence

from state.packet import CognitionPacket
from state.routing import ToolRouting
from tools.catalogue.catalogue import Catalogue

ALL = "*"
NEAREST = 5


def described(
    routing: ToolRouting, wishes: Sequence[str], packet: CognitionPacket, catalogue: Catalogue
) -> ToolRouting:
    """Return the routing section with the tools that the wishes stand for: the next palette has them in full.

    A wish is a tool's name, a category or a server, or `*` for all, those on the palette first. A name that nothing
    has gets the nearest five as suggestions.
    """
    shown = [entry.tool_name for entry in packet.context.palette]
    found = [_meant(wish, shown, catalogue) for wish in wishes]
    unknown = [wish for wish, names in zip(wishes, found, strict=True) if not names]
    nearest = [name for wish in unknown for name in catalogue.nearest(wish, NEAREST)]
    return routing.described(tuple(name for names in found for name in names), tuple(dict.fromkeys(nearest))[:NEAREST])


def _meant(wish: str, shown: Sequence[str], catalogue: Catalogue) -> Iterable[str]:
    if wish.strip() == ALL:
        return dict.fromkeys([*shown, *catalogue])
    name = catalogue.canonical(wish)
    return [name] if name else catalogue.group(wish)
