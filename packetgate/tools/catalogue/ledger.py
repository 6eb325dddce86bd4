"""The capabilities ledger: what is connected, in a few lines that stand in every prompt."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, takewhile

from packetgate.state.printing import counted
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.tokens import estimated_tokens

SHORT_TOKENS, LONG_TOKENS, WHOLE_TOKENS = 200, 350, 700
"""Most tokens, as estimated, of the ledger that an answer is given, of the longer one that tools are chosen by, and of
one that names every tool."""
SHORTER = ((5, 4), (4, 4), (3, 4), (2, 4), (1, 4), (0, 4), (0, 2))
"""How many tools and categories a server's line may name: the first pair that makes the ledger short enough counts."""
MAX_NAMED = 5
"""Most servers that a category's line names."""
NONE = "- none is connected"

Servers = Mapping[str, Sequence[ToolSpec]]
"""Tools by server, in a fixed order."""


def whole_ledger(servers: Servers) -> str:
    """Return one line a server that names all of its tools; empty where that is too long, or there is none."""
    lines = []
    for server, specs in servers.items():
        kinds = [kind for kind, _ in Counter(spec.category for spec in specs if spec.category).most_common()]
        about = f": {', '.join(kinds)}" if kinds else ""
        names = ", ".join(spec.name.removeprefix(f"{server}.") for spec in specs)
        lines.append(f"- {server} ({counted(len(specs), 'tool')}{about}): {names}")
    return text if _fits(text := "\n".join(lines), WHOLE_TOKENS) else ""


def capabilities_ledger(servers: Servers, permanent: Iterable[str] = (), most: int = SHORT_TOKENS) -> str:
    """Return one line a server: how many tools, about what, the primary ones. Blocking, for longer than a turn should.

    Where that is longer than `most` tokens, fewer tools are named, then none, then fewer categories; then servers share
    lines, one a category.
    """
    ordered = {server: primary_tools(specs, permanent) for server, specs in servers.items()}
    for primary, kinds in SHORTER:
        lines = [_server_line(server, specs, ordered[server][:primary], kinds) for server, specs in servers.items()]
        if _fits(text := "\n".join(lines), most):
            return text or NONE
    return _by_category(servers, most)


def primary_tools(specs: Sequence[ToolSpec], permanent: Iterable[str]) -> list[str]:
    """Return a server's tools, the telling ones first.

    Permanent ones, then one of each category in turn, the largest category first, the shortest name first.
    """
    always, sizes, turns = set(permanent), Counter(spec.category for spec in specs), Counter[str]()
    order: dict[str, tuple[bool, int, int, str]] = {}
    for spec in sorted(specs, key=lambda spec: (len(spec.name), spec.name)):
        order[spec.name] = (spec.name not in always, turns[spec.category], -sizes[spec.category], spec.name)
        turns[spec.category] += 1
    return sorted(order, key=lambda name: order[name])


def _server_line(server: str, specs: Sequence[ToolSpec], primary: Sequence[str], kinds: int) -> str:
    counts = Counter(spec.category for spec in specs if spec.category).most_common(kinds)
    rest = len(specs) - sum(number for _, number in counts)
    told = [*counts, ("other", rest)] if rest else counts
    about = f": {', '.join(f'{kind} {number}' for kind, number in told)}" if counts else ""
    named = [name.removeprefix(f"{server}.") for name in primary]
    tools = f"; {', '.join(named)}{', ...' if len(specs) > len(named) else ''}" if named else ""
    return f"- {server} ({counted(len(specs), 'tool')}){about}{tools}"


def _by_category(servers: Servers, most: int) -> str:
    """Return one line a category, the largest first, each naming servers while there is room; the rest goes last."""
    groups: dict[str, list[ToolSpec]] = {}
    for spec in chain.from_iterable(servers.values()):
        groups.setdefault(spec.category, []).append(spec)
    uncategorised = groups.pop("", [])
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))

    def text(kept: int, named: int) -> str:
        rest = [*uncategorised, *chain.from_iterable(specs for _, specs in ordered[kept:])]
        shown = [*ordered[:kept], *([("other", rest)] if rest else [])]
        return "\n".join(_category_line(category, specs, named) for category, specs in shown)

    kept = _longest(lambda kept: _fits(text(kept, 0), most), len(ordered))
    return text(kept, _longest(lambda named: _fits(text(kept, named), most), MAX_NAMED))


def _longest(fits: Callable[[int], bool], most: int) -> int:
    """Return how far a number may grow, up to `most`, while it fits; 0 if it never does."""
    return max(takewhile(fits, range(1, most + 1)), default=0)


def _category_line(category: str, specs: Sequence[ToolSpec], named: int) -> str:
    servers = [server for server, _ in Counter(spec.server for spec in specs).most_common()]
    more = ", ..." if len(servers) > named else ""
    return f"- {category} ({counted(len(specs), 'tool')})" + (f": {', '.join(servers[:named])}{more}" if named else "")


def _fits(text: str, most: int) -> bool:
    return estimated_tokens(text) <= most
