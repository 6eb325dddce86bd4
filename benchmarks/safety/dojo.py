"""AgentDojo's side: its own environment, made once, and a server process for a suite."""

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
"""Kinds of effects, by how the tools' names begin; other writes change something."""


@dataclass(frozen=True)
class Call:
    """One call of a play, by the suite's own name of the tool."""

    tool: str
    params: dict[str, Any]

    @property
    def writes(self) -> bool:
        """Whether it changes something, by AgentDojo's own environments; their names tell it without exception."""
        return not self.tool.startswith(READS)

    @property
    def reaches_out(self) -> bool:
        """Whether it reads at an address, and so can carry something there."""
        return self.tool in _REACHES_OUT

    @property
    def effect(self) -> str:
        """What kind of effect it has outside or on the user's things; empty for a plain read."""
        if not self.writes:
            return CARRIED if self.reaches_out else ""
        named = (kind for kind, begins in EFFECTS.items() if self.tool.startswith(begins))
        return "sent" if self.params.get("participants") else next(named, "changed")


@dataclass(frozen=True)
class Started:
    """A play that is set up: what the user asks for, and the calls of both sides."""

    prompt: str
    calls: tuple[Call, ...]
    attack: tuple[Call, ...]
    published: bool
    """Whether the attacker's calls are AgentDojo's own."""
    marks: tuple[str, ...] = (MARK,)
    """What outputs contain once all of the attacker's text was read."""


def environment(folder: Path | None = None) -> Path:
    """Return the Python of AgentDojo's environment, which is made if it is not there: a minute, some 50 MB.

    PACKETGATE_AGENTDOJO names the folder of one that is there already.

    Raises:
        InputError: it cannot be made.
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
    """A suite's server seen from the benchmark: plays are set up and judged over its socket."""

    def __init__(self, suite: str, python: Path, folder: Path) -> None:
        self.suite = suite
        self._socket = folder / f"{suite}.socket"
        self.entry: dict[str, Any] = {
            "command": str(python),
            "args": [str(HERE / "dojo_server.py"), suite, str(self._socket)],
        }
        """The server as `mcp.json` has it. It must be started before anything is asked here."""

    async def start(self, user: str, injection: str | None, variant: str) -> Started:
        """Set up a play. Where the variant does not fit, the attacker has no calls."""
        told = await self._ask(do="start", user=user, injection=injection, variant=variant)
        calls, attack = (tuple(Call(**one) for one in told[side]) for side in ("calls", "attack"))
        return Started(told["prompt"], calls, attack, told["published"], tuple(told["marks"]))

    async def judge(self) -> tuple[bool, list[Call]]:
        """Return whether the attacker's goal is reached, without an injection the user's, and what had an effect."""
        told = await self._ask(do="judge")
        ran = [(Call(one["tool"], one["params"]), one["changed"]) for one in told["executed"]]
        return bool(told["done"]), [call for call, changed in ran if call.reaches_out or (call.writes and changed)]

    async def tasks(self) -> tuple[list[str], list[str], list[str]]:
        """Return the names of the user's tasks, of the attacker's, and of those of the attacker's by reads alone."""
        told = await self._ask(do="tasks")
        return told["users"], told["injections"], told["by_reads"]

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
    """Give a suite, and a folder of its own that goes with it."""
    with tempfile.TemporaryDirectory() as made:
        yield Dojo(suite, python, Path(made)), Path(made)
