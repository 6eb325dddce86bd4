"""A repeated request runs once, and only the first of two answers counts."""

import asyncio
from pathlib import Path

import openai
import pytest
from support.command_line import CommandLine
from support.counting import Hotel
from support.endpoints import Chat, started
from support.mcp_servers import until

from packetgate.connectors.serve.conversations import is_question_message

pytestmark = pytest.mark.slow
BOOK = 'Book the room "r1"'


@pytest.fixture
def hotel(tmp_path: Path) -> Hotel:
    made = Hotel(tmp_path)
    made.settings(tmp_path / "home", None)
    return made


def options(hotel: Hotel) -> tuple[str, ...]:
    return "--allow-writes", "--mcp-config", str(hotel / "mcp.json")


async def test_a_first_message_repeated_after_a_kill_writes_once(cli: CommandLine, hotel: Hotel) -> None:
    (cli.folder / "packetgate.toml").write_text('[[policy.rules]]\neffect = "allow"\ntool = "hotel.book_room"\n')
    hotel.hold("after")
    async with started(cli, *options(hotel)) as killed:
        saying = asyncio.create_task(Chat(killed.client()).say(BOOK))
        await until(lambda: hotel.counted("r1")["held-after"] > 0)
        await killed.kill()
        with pytest.raises(openai.APIConnectionError):
            await saying
    hotel.release()
    async with started(cli, *options(hotel)) as served:
        chat = Chat(served.client())
        assert is_question_message(await chat.say(BOOK)), "the user is asked about an interrupted write"
        await chat.say("no")
        assert hotel.counted("r1")["booked"] == 1
        assert "r1 is booked" in await Chat(served.client()).say(BOOK)


async def test_an_answer_in_a_terminal_runs_in_the_server(cli: CommandLine, hotel: Hotel) -> None:
    async with started(cli, *options(hotel)) as served:
        chat = Chat(served.client())
        await chat.say(BOOK)
        assert (await asyncio.to_thread(cli.run, "answer")).status == 3
        answered = await asyncio.to_thread(cli.run, "answer", "yes")
        assert (answered.status, "r1 is booked" in answered.out) == (0, True), answered.err
        assert "r1 is booked" in await chat.say("yes")
    assert (hotel.counted("r1")["booked"], len(hotel.servers)) == (1, 1)


async def test_the_first_answer_counts_and_a_different_answer_is_refused(cli: CommandLine, hotel: Hotel) -> None:
    async with started(cli, *options(hotel)) as one, started(cli, *options(hotel)) as two:
        asked = Chat(one.client())
        await asked.say(BOOK)

        def window(client: openai.AsyncOpenAI) -> Chat:
            return Chat(client, messages=[*asked.messages])

        hotel.hold("before")
        saying = asyncio.create_task(window(one.client()).say("yes"))
        await until(lambda: hotel.counted("r1")["held-before"] > 0)
        losing = asyncio.create_task(window(two.client()).say("no"))
        await asyncio.sleep(0.5)  # the second request waits for the session
        hotel.release()
        assert "r1 is booked" in await saying
        with pytest.raises(openai.BadRequestError):
            await losing
        assert "r1 is booked" in await window(one.client()).say("yes")
        with pytest.raises(openai.BadRequestError):
            await window(two.client()).say("no")
        assert hotel.counted("r1")["booked"] == 1
