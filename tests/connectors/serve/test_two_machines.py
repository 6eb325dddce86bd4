"""One of two machines on one PostgreSQL is killed: every conversation completes, and no write runs twice."""

import asyncio
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import openai
import pytest
from support.booking import Hotel
from support.command_line import CommandLine
from support.endpoints import Chat, started
from support.mcp_servers import until

from packetgate.connectors.serve.conversations import is_question_message
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings

pytestmark = pytest.mark.slow
THREADS, AT_ONCE = 200, 40
KILLED_AFTER, IN_CALLS = 60, 3
"""Number of bookings that run when the machine is killed."""


@pytest.fixture
def hotel(tmp_path: Path) -> Hotel:
    return Hotel(tmp_path)


@pytest.fixture
def other(cli: CommandLine) -> CommandLine:
    """Return another machine that shares no files with the first."""
    folder = cli.folder.with_name("elsewhere")
    folder.mkdir()
    return CommandLine(folder, cli.home.with_name("home elsewhere"))


@dataclass
class Guest:
    """A user who books a room, approves or denies, and switches to the other machine if one is dead."""

    hotel: Hotel
    room: str
    decides: bool
    survivor: openai.AsyncOpenAI
    asked_again: int = 0
    moved: int = 0

    async def say(self, chat: Chat, words: str) -> str:
        """Send a message until a machine answers."""
        while True:
            try:
                return await chat.say(words)
            except openai.APIConnectionError:
                self.moved += 1
                assert self.moved < 5
                chat.client = self.survivor

    async def booked(self, first: openai.AsyncOpenAI, second: openai.AsyncOpenAI) -> str:
        """Book at one machine and decide at the other; return the answer."""
        chat = Chat(first)
        question = await self.say(chat, f'Book the room "{self.room}"')
        assert is_question_message(question), question
        chat.client = second
        answer = await self.say(chat, "yes" if self.decides else "no")
        while is_question_message(answer):
            self.asked_again += 1
            assert self.asked_again < 4, answer
            yes = self.decides and not self.hotel.bookings(self.room)  # repeat the call only if the room is not booked
            answer = await self.say(chat, "yes" if yes else "no")
        return answer


@pytest.mark.timeout(900)
async def test_no_write_is_lost_or_repeated_when_a_machine_dies(
    cli: CommandLine, other: CommandLine, hotel: Hotel, postgres: str, capsys: pytest.CaptureFixture[str]
) -> None:
    room, settings = asyncio.Semaphore(AT_ONCE), Settings(home=cli.home, database_url=postgres)
    options = {"PACKETGATE_DATABASE_URL": postgres, "PACKETGATE_USAGE_DAYS": "0"}
    async with (
        started(cli, "--allow-writes", "--mcp-config", hotel.configure(cli.folder), **options) as here,
        started(other, "--allow-writes", "--mcp-config", hotel.configure(other.folder), **options) as there,
    ):
        clients = [served.client() for served in (here, there)]  # creating a client takes as long as a turn
        guests = [Guest(hotel, f"r{number}", number % 10 != 9, clients[0]) for number in range(THREADS)]

        async def one(number: int) -> str:
            async with room:
                return await guests[number].booked(clients[number % 2], clients[(number + 1) % 2])

        async def dies() -> int:
            await until(lambda: hotel.bookings() >= KILLED_AFTER, 600)
            while True:
                await until(lambda: hotel.in_calls(there.process.pid) >= IN_CALLS, 600)
                there.process.send_signal(signal.SIGSTOP)  # the machine receives no further results
                if (running := hotel.in_calls(there.process.pid)) >= IN_CALLS:
                    await there.kill()
                    return running
                there.process.send_signal(signal.SIGCONT)

        answers, in_calls = await asyncio.gather(asyncio.gather(*map(one, range(THREADS))), dies())
    done = Counter(of for what, of, _ in hotel.log if what == "booked")
    events = Counter[str]()
    async for row in open_journal(settings).rows():
        events[row.event] += 1
    moved, again = sum(guest.moved > 0 for guest in guests), sum(guest.asked_again for guest in guests)
    with capsys.disabled():
        print(  # noqa: T201  the figures are the point
            f"\n{THREADS} threads; killed with {in_calls} calls running; {moved} went elsewhere, {again} asked again; "
            f"{sum(done.values())} bookings, {events.total()} entries"
        )
    assert all(answers)
    assert done == {guest.room: 1 for guest in guests if guest.decides}
    assert in_calls >= IN_CALLS
    assert moved >= IN_CALLS
    assert again >= 1, "the user is asked about an unfinished write"
