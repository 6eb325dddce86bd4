"""What `packetgate.toml` says of tools that are not there."""

from pathlib import Path

from tools.catalogue.catalogue import Catalogue


def unfitting(catalogue: Catalogue, path: Path | None) -> list[str]:
    """Return a line for each pattern that fits no tool; none is an error, because the tool's server may be down."""
    return [
        f"{path}: {where}: {pattern!r} fits no tool{_nearest(catalogue, pattern)}"
        for where, pattern in catalogue.preferences.without_a_tool(catalogue)
    ]


def _nearest(catalogue: Catalogue, pattern: str) -> str:
    nearest = catalogue.nearest(pattern, limit=3)
    return f"; nearest: {', '.join(nearest)}" if nearest else ""
