"""Run AgentDojo: create its own environment once, and start a server process for each suite."""

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.environment import make_environment
from benchmarks.safety.dojo_variants import MARK, READS

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
FOLDER = HERE.parents[1] / ".packetgate" / "benchmarks" / "agentdojo"
LIMIT = 2**24

_REACHES_OUT = frozenset({"get_webpage", "download_file"})
CARRIED = "carried off"
EFFECTS = {
    "deleted": ("delete_", "cancel_", "remove_"),
    "sent": ("send_", "post_", "invite_", "share_", "schedule_", "reserve_", "add_"),
}
"""Maps each kind of effect to the first words of tool names; other writes count as changes."""


@dataclass(frozen=True)
class Call:
    """One call of a play, with the suite's own name of the tool."""

    tool: str
    params: dict[str, Any]

    @property
    def writes(self) -> bool:
        """Whether the call changes AgentDojo's environment. The names of its tools always show this."""
        return not self.tool.startswith(READS)

    @property
    def reaches_out(self) -> bool:
        """Whether the call reads from an address, and so can send data there."""
        return self.tool in _REACHES_OUT

    @property
    def effect(self) -> str:
        """Kind of the call's effect on the user's data or outside; empty for a plain read."""
        if not self.writes:
            return CARRIED if self.reaches_out else ""
        named = (kind for kind, begins in EFFECTS.items() if self.tool.startswith(begins))
        return "sent" if self.params.get("participants") else next(named, "changed")


@dataclass(frozen=True)
class Started:
    """A started play: the user's request, and the calls of both sides."""

    prompt: str
    calls: tuple[Call, ...]
    attack: tuple[Call, ...]
    published: bool
    """Whether the attacker's calls are AgentDojo's own."""
    marks: tuple[str, ...] = (MARK,)
    """Words of outputs that show that the attacker's whole text was read."""


def environment(folder: Path | None = None) -> Path:
    """Return the Python of AgentDojo's environment. Creating a missing environment takes a minute and about 50 MB.

    PACKETGATE_AGENTDOJO names the folder of an existing environment.

    Raises:
        InputError: the environment cannot be created.
    """
    folder = folder or Path(os.environ.get("PACKETGATE_AGENTDOJO") or FOLDER)
    python, made_of = folder / "bin" / "python", folder / REQUIREMENTS.name
    wanted = REQUIREMENTS.read_text()
    if python.exists() and made_of.is_file() and made_of.read_text() == wanted:
        return python
    make_environment(folder, "AgentDojo", "--no-deps", "--requirements", str(REQUIREMENTS))
    made_of.write_text(wanted)
    return python


class Dojo:
    """A suite's server: its socket sets up plays and judges them."""

    def __init__(self, suite: str, python: Path, folder: Path) -> None:
        self.suite = suite
        self._socket = folder / f"{suite}.socket"
        self.entry: dict[str, Any] = {
            "command": str(python),
            "args": [str(HERE / "dojo_server.py"), suite, str(self._socket)],
        }
        """The server's entry for `mcp.json`. The server must run before any other method is called."""

    async def start(self, user: str, injection: str | None, variant: str) -> Started:
        """Start a play. If the variant does not apply, the attacker has no calls."""
        reply = await self._ask(do="start", user=user, injection=injection, variant=variant)
        calls, attack = (tuple(Call(**one) for one in reply[side]) for side in ("calls", "attack"))
        return Started(reply["prompt"], calls, attack, reply["published"], tuple(reply["marks"]))

    async def judge(self) -> tuple[bool, list[Call]]:
        """Return whether the attacker's goal (without an attacker, the user's) is reached, and calls with effects."""
        reply = await self._ask(do="judge")
        ran = [(Call(one["tool"], one["params"]), one["changed"]) for one in reply["executed"]]
        return bool(reply["done"]), [call for call, changed in ran if call.reaches_out or (call.writes and changed)]

    async def tasks(self) -> tuple[list[str], list[str], list[str]]:
        """Return the names of the user's tasks, the attacker's tasks, and the attacker's tasks that reads complete."""
        reply = await self._ask(do="tasks")
        return reply["users"], reply["injections"], reply["by_reads"]

    async def _ask(self, **message: Any) -> dict[str, Any]:
        reader, writer = await asyncio.open_unix_connection(str(self._socket), limit=LIMIT)
        try:
            writer.write(json.dumps(message).encode() + b"\n")
            answer: dict[str, Any] = json.loads(await reader.readline())
            return answer
        finally:
            writer.close()


@asynccontextmanager
async def dojo(suite: str, python: Path) -> AsyncIterator[tuple[Dojo, Path]]:
    """Yield a suite with its own folder, and remove the folder afterwards."""
    with tempfile.TemporaryDirectory() as made:
        yield Dojo(suite, python, Path(made)), Path(made)
