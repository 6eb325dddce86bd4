"""Packages of other distributions that stand before ours: `tools` and `models` are names that others take too."""

import sys
from importlib.util import find_spec
from pathlib import Path

ROOMS = ("state", "prompts", "models", "tools", "deciders", "nodes", "graph")


def check_rooms() -> None:
    """End the process with a line that says which path stands in the way, if one does."""
    home = Path(__file__).resolve().parents[1]
    for room in ROOMS:
        spec = find_spec(room)
        found = Path(spec.origin).resolve() if spec and spec.origin else None
        if found != home / room / "__init__.py":
            sys.exit(
                f"packetgate: the package {room!r} that Python finds is {found}, not Packetgate's own in {home}: take "
                "it out of PYTHONPATH, uninstall what brought it, or install Packetgate in an environment of its own"
            )
