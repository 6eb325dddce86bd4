"""How much code one turn goes through that reads with one tool: functions, calls and files, its own alone.

Beside it stands the same by LangChain's `create_agent`, with a selector and approvals, and with our middleware. The
first turn is not counted: what is loaded once is no part of a turn. A coroutine that goes on counts as another call.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.overhead import FEWEST, Agent, Place

GOALS = {"functions": 250, "calls": 1_200, "files": 45}
"""For a turn of ours with a model."""
SIDES: dict[str, tuple[str, Callable[[Place], Awaitable[Agent]]]] = {
    "packetgate": ("packetgate", lambda place: place.reading(FEWEST)),
    "packetgate as middleware": ("packetgate", lambda place: place.gated(FEWEST)),
    "create_agent": ("langchain", lambda place: place.theirs(FEWEST)),
}
"""By name: whose code is counted, and what takes the turn."""


class Crossed:
    """Counts the calls of functions in one folder, in all threads, while it is entered."""

    def __init__(self, package: str) -> None:
        spec = find_spec(package)
        (folder,) = spec.submodule_search_locations if spec and spec.submodule_search_locations else ("",)
        self._folder = f"{folder}{os.sep}"
        self.calls: Counter[tuple[str, str, int]] = Counter()

    def __enter__(self) -> "Crossed":
        threading.setprofile(self._saw)
        sys.setprofile(self._saw)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _saw(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(self._folder):
            self.calls[code.co_filename, code.co_qualname, code.co_firstlineno] += 1

    @property
    def figures(self) -> dict[str, int]:
        """The distinct functions, their calls, and the files that they stand in."""
        return {
            "functions": len(self.calls),
            "calls": self.calls.total(),
            "files": len({name for name, _, _ in self.calls}),
        }


async def crossed(name: str) -> Crossed:
    """Return what a turn goes through."""
    package, made = SIDES[name]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        agent = await made(Place("in memory", folder, stack))
        with Crossed(package) as found:
            await agent.turn()  # the threads that it starts are those of the next one
            found.calls.clear()
            await agent.turn()
    return found


def main() -> None:
    """Print the figures, or the functions that are called most."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.crossing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON a side")
    parser.add_argument("--most", type=int, default=0, help="show so many of the functions that are called most")
    given = parser.parse_args()
    for name in SIDES:
        found = asyncio.run(crossed(name))
        goals = GOALS if name == "packetgate" else {}
        if given.json:
            print(json.dumps({"name": name, **found.figures, "goals": goals}))
            continue
        told = ", ".join(f"{count:,} {what}" for what, count in found.figures.items())
        print(f"{name}: {told}" + "".join(f"; goal {goal:,} {what}" for what, goal in goals.items()))
        for (file, function, line), count in found.calls.most_common(given.most):
            print(f"  {count:6} {function} ({Path(file).name}:{line})")


if __name__ == "__main__":
    main()
