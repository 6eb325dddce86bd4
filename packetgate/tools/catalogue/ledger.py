"""The capabilities ledger: the connected servers in a few lines, part of every prompt."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from packetgate.state.printing import counted
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.tokens import estimated_tokens

MAX_TOKENS = 200
"""Maximum estimated tokens in a ledger."""
LINE_SIZES = ((5, 4), (4, 4), (3, 4), (2, 4), (1, 4), (0, 4), (0, 2))
"""Maximum tools and categories in a server's line; the first pair that makes the ledger short enough is used."""
MAX_NAMED = 5
"""Maximum servers in a category's line."""
NO_SERVERS = "- none is connected"

Servers = Mapping[str, Sequence[ToolSpec]]
"""Tools by server, in a fixed order."""


def capabilities_ledger(servers: Servers, permanent: Iterable[str] = (), max_tokens: int = MAX_TOKENS) -> str:
    """Return a line for each server: its number of tools, their categories, and its primary tools.

    If the text has more than `max_tokens` tokens, the lines get shorter. If that is not enough, the text has a line for
    each category instead. May block.
    """
    primary = {server: primary_tools(specs, permanent) for server, specs in servers.items()}
    for names, categories in LINE_SIZES:
        text = "\n".join(
            _server_line(server, specs, primary[server][:names], categories) for server, specs in servers.items()
        )
        if estimated_tokens(text) <= max_tokens:
            return text or NO_SERVERS
    return _category_ledger(servers, max_tokens)


def primary_tools(specs: Sequence[ToolSpec], permanent: Iterable[str]) -> list[str]:
    """Return the names of a server's tools: permanent tools first, then a tool of each category in turn.

    Larger categories come first.
    """
    permanent_names, sizes, turns = set(permanent), Counter(spec.category for spec in specs), Counter[str]()
    order: dict[str, tuple[bool, int, int, str]] = {}
    for spec in sorted(specs, key=lambda spec: (len(spec.name), spec.name)):
        order[spec.name] = (spec.name not in permanent_names, turns[spec.category], -sizes[spec.category], spec.name)
        turns[spec.category] += 1
    return sorted(order, key=lambda name: order[name])


def _server_line(server: str, specs: Sequence[ToolSpec], primary: Sequence[str], categories: int) -> str:
    counts = Counter(spec.category for spec in specs if spec.category).most_common(categories)
    other = len(specs) - sum(count for _, count in counts)
    parts = [f"{category} {count}" for category, count in [*counts, *([("other", other)] if other else [])]]
    about = f": {', '.join(parts)}" if counts else ""
    more = ", ..." if len(specs) > len(primary) else ""
    names = ", ".join(name.removeprefix(f"{server}.") for name in primary)
    return f"- {server} ({counted(len(specs), 'tool')}){about}" + (f"; {names}{more}" if primary else "")


def _category_ledger(servers: Servers, max_tokens: int) -> str:
    groups: dict[str, list[ToolSpec]] = {}
    for spec in chain.from_iterable(servers.values()):
        groups.setdefault(spec.category, []).append(spec)
    uncategorised = groups.pop("", [])
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))

    def text(shown: int, named: int) -> str:
        rest = [*uncategorised, *chain.from_iterable(specs for _, specs in ordered[shown:])]
        lines = [*ordered[:shown], *([("other", rest)] if rest else [])]
        return "\n".join(_category_line(category, specs, named) for category, specs in lines)

    shown = named = 0
    while shown < len(ordered) and estimated_tokens(text(shown + 1, 0)) <= max_tokens:
        shown += 1
    while named < MAX_NAMED and estimated_tokens(text(shown, named + 1)) <= max_tokens:
        named += 1
    return text(shown, named)


def _category_line(category: str, specs: Sequence[ToolSpec], named: int) -> str:
    servers = [server for server, _ in Counter(spec.server for spec in specs).most_common()]
    more = ", ..." if len(servers) > named else ""
    return f"- {category} ({counted(len(specs), 'tool')})" + (f": {', '.join(servers[:named])}{more}" if named else "")
