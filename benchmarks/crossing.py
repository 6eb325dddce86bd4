"""Count the code that a turn with one read executes: functions, calls and files of the package itself.

For comparison, LangChain's `create_agent` runs the same turn: with a tool selector and approvals, and with our
middleware. The first turn is not counted, because it also loads modules. A coroutine that resumes counts as a call.
Only named functions count, because each comprehension is a separate frame before Python 3.12.
"""

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

from benchmarks.command_line import command_parser
from benchmarks.overhead import FEWEST, Agent, Place

GOALS = {
    "packetgate": {"functions": 260, "calls": 1_200, "files": 45},
    "packetgate as middleware": {"functions": 150, "calls": 400, "files": 25},
}
SIDES: dict[str, tuple[str, Callable[[Place], Awaitable[Agent]]]] = {
    "packetgate": ("packetgate", lambda place: place.reading(FEWEST)),
    "packetgate as middleware": ("packetgate", lambda place: place.gated(FEWEST)),
    "create_agent": ("langchain", lambda place: place.theirs(FEWEST)),
}
"""Maps each name to the package whose code is counted and a function that returns the agent."""


class CallCounter:
    """Context manager that counts function calls in one package, in all threads."""

    def __init__(self, package: str) -> None:
        spec = find_spec(package)
        (folder,) = spec.submodule_search_locations if spec and spec.submodule_search_locations else ("",)
        self._folder = f"{folder}{os.sep}"
        self.calls: Counter[tuple[str, str, int]] = Counter()

    def __enter__(self) -> "CallCounter":
        threading.setprofile(self._saw)
        sys.setprofile(self._saw)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _saw(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        is_named = not code.co_name.startswith("<")  # <listcomp>, <genexpr>, <lambda>
        if event == "call" and is_named and code.co_filename.startswith(self._folder):
            self.calls[code.co_filename, code.co_qualname, code.co_firstlineno] += 1

    @property
    def figures(self) -> dict[str, int]:
        """The numbers of distinct functions, of calls, and of files that contain the functions."""
        return {
            "functions": len(self.calls),
            "calls": self.calls.total(),
            "files": len({name for name, _, _ in self.calls}),
        }


async def counted_turn(name: str) -> CallCounter:
    """Return the calls of a turn."""
    package, made = SIDES[name]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        agent = await made(Place("in memory", folder, stack))
        with CallCounter(package) as counter:
            await agent.turn()  # the next turn uses the threads that this turn starts
            counter.calls.clear()
            await agent.turn()
    return counter


def main() -> None:
    """Print the metrics, and with `--most` the functions with the most calls."""
    parser = command_parser("benchmarks.crossing", __doc__)
    parser.add_argument("--json", action="store_true", help="print JSON, one line per side")
    parser.add_argument("--most", type=int, default=0, help="list this many functions with the most calls")
    args = parser.parse_args()
    for name in SIDES:
        counter = asyncio.run(counted_turn(name))
        goals = GOALS.get(name, {})
        if args.json:
            print(json.dumps({"name": name, **counter.figures, "goals": goals}))
            continue
        text = ", ".join(f"{count:,} {what}" for what, count in counter.figures.items())
        print(f"{name}: {text}" + "".join(f"; goal {goal:,} {what}" for what, goal in goals.items()))
        for (file, function, line), count in counter.calls.most_common(args.most):
            print(f"  {count:6} {function} ({Path(file).name}:{line})")


if __name__ == "__main__":
    main()
