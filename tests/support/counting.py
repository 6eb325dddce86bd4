"""A server process that counts its actions, and turns whose processes are killed during calls."""

import asyncio
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from support.killed_turn import forking
from support.mcp_servers import alive, until
from support.plain_server import Folder, configure, entry

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.turn import Asked, Continue, Finished, Reply, Say, UserInput, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.errors import SessionError

WRITES = RoutingContext(allow_write_tools=True)
SERVER = """
async def held(where, room):
    if (folder / f"hold-{where}").exists():
        folder.note("log", f"held-{where} {room} ")
        while (folder / f"hold-{where}").exists():
            await asyncio.sleep(0.05)
async def book_room(room, idempotency_key):
    "Book a room."
    await held("before", room)
    folder.note("log", f"booked {room} {idempotency_key}")
    await held("after", room)
    return f"{room} is booked"
async def get_price(room):
    "Get the price of a room."
    await held("before", room)
    folder.note("log", f"checked {room} ")
    await held("after", room)
    return f"{room} costs nothing"
folder.note("pids", os.getpid())
server.tool(book_room)
server.reading(get_price)
"""


class Hotel(Folder):
    """The server's folder with its log and its breakpoints."""

    def settings(self, home: Path, database_url: str | None) -> Settings:
        """Return settings with the server configured."""
        config = configure(self / "mcp.json", hotel=entry(SERVER, self.path))
        return Settings(home=home, mcp_config=config, database_url=database_url)

    @property
    def log(self) -> list[list[str]]:
        """The log: action, room and, for a booking, its key."""
        return [line.split(" ") for line in self.lines("log")]

    @property
    def servers(self) -> list[int]:
        """The process ids of all started servers."""
        return [int(line) for line in self.lines("pids")]

    def counted(self, room: str) -> Counter[str]:
        """Return the number of actions on a room, by action."""
        return Counter(what for what, of, *_ in self.log if of == room)

    def keys(self, room: str) -> set[str]:
        """Return the idempotency keys that came with a room's bookings."""
        return {key for what, of, key in self.log if (what, of) == ("booked", room)}

    def hold(self, where: str) -> None:
        """Hold every call before or after its effect."""
        (self / f"hold-{where}").touch()

    def release(self) -> None:
        """Stop holding calls."""
        for hold in self.path.glob("hold-*"):
            hold.unlink()


def started(settings: Settings, session: str, turn: UserInput) -> BaseProcess:
    """Start a turn in a new process."""
    process = forking().Process(target=_run, args=(settings, session, turn))
    process.start()
    return process


def _run(settings: Settings, session: str, turn: UserInput) -> None:
    try:
        asyncio.run(events(settings, session, turn))
    except SessionError:
        sys.exit(4)


async def killed(hotel: Hotel, *processes: BaseProcess) -> None:
    """Kill processes, and wait until their servers have ended."""
    for process in processes:
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        await asyncio.to_thread(process.join)
    await until(lambda: not any(map(alive, hotel.servers)))


async def killed_in_call(hotel: Hotel, room: str, where: str, *processes: BaseProcess) -> None:
    """Kill the processes as soon as a call of any process has stopped at the breakpoint."""
    await until(lambda: hotel.counted(room)[f"held-{where}"] > 0 or not any(one.is_alive() for one in processes))
    await killed(hotel, *processes)
    assert hotel.counted(room)[f"held-{where}"] == 1, "exactly one process has the call"
    hotel.release()


async def events(settings: Settings, session: str, turn: UserInput) -> list[Any]:
    """Run a turn, and return its events."""
    async with open_sessions(settings) as sessions:
        return [event async for event in run_turn(sessions, turn, session, WRITES)]


async def asked(settings: Settings, session: str, text: str) -> Asked:
    """Run a turn to its question."""
    end = (await events(settings, session, Say(text)))[-1]
    assert isinstance(end, Asked), end
    return end


@dataclass
class End:
    """The end of a continued turn."""

    finished: Finished
    doubts: int
    """Number of questions about repeating a call that may have run."""


async def finished(settings: Settings, session: str, hotel: Hotel, room: str, text: str) -> End:
    """Continue a turn like a user who checks the room before approving a repeated booking."""
    doubts = 0
    async with open_sessions(settings) as sessions:
        while True:
            state = await sessions.state(session)
            if state.question is not None:
                about = state.question["action_requests"][0]["about"]
                if "it is not known whether it finished: run it again?" in about:
                    doubts += 1
                turn: UserInput = Reply("no" if hotel.counted(room)["booked"] else "yes")
            elif state.is_unfinished:
                turn = Continue()
            elif not state.packet.content.original_prompt:
                turn = Say(text)  # the process was killed before it stored anything
            else:
                return End(Finished(state.packet), doubts)
            received = [event async for event in run_turn(sessions, turn, session, WRITES)]
            assert isinstance(received[-1], Asked | Finished), received


FINISHED, ASKED, REFUSED = 0, 3, 4
"""Exit statuses of answering processes: the turn ended, the question was repeated, or the answer was too late."""


async def race(settings: Settings, session: str, *values: str) -> list[int]:
    """Answer the session's question with all values concurrently, each in a process; return the exit statuses."""
    together = forking().Barrier(len(values))
    started = [forking().Process(target=_answer, args=(settings, session, value, together)) for value in values]
    for process in started:
        process.start()
    await asyncio.to_thread(lambda: [process.join() for process in started])
    return [process.exitcode or 0 for process in started]


def _answer(settings: Settings, session: str, value: str, together: Barrier) -> None:
    raise SystemExit(asyncio.run(_reply(settings, session, value, together)))


async def _reply(settings: Settings, session: str, value: str, together: Barrier) -> int:
    async with open_sessions(settings) as sessions:
        await asyncio.to_thread(together.wait)
        try:
            received = [event async for event in run_turn(sessions, Reply(value), session, WRITES)]
        except SessionError:
            return REFUSED
    return FINISHED if isinstance(received[-1], Finished) else ASKED
