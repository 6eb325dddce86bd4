"""What a client sends again is done once; of two answers the one that counted holds."""

import asyncio
from pathlib import Path

import openai
import pytest
from support.command_line import CommandLine
from support.counting import Hotel
from support.endpoints import Chat, started
from support.mcp_servers import until

from packetgate.connectors.serve.conversing import is_question

BOOK = 'Book the room "r1"'


@pytest.fixture
def hotel(tmp_path: Path) -> Hotel:
    made = Hotel(tmp_path)
    made.settings(tmp_path / "home", None)
    return made


def given(hotel: Hotel) -> tuple[str, ...]:
    return "--allow-writes", "--mcp-config", str(hotel.folder / "mcp.json")


async def test_a_first_message_sent_again_after_a_kill_books_once(cli: CommandLine, hotel: Hotel) -> None:
    (cli.folder / "packetgate.toml").write_text('[[policy.rules]]\neffect = "allow"\ntool = "hotel.book_room"\n')
    hotel.hold("after")
    async with started(cli, *given(hotel)) as killed:
        saying = asyncio.create_task(Chat(killed.client()).say(BOOK))
        await until(lambda: hotel.counted("r1")["held-after"] > 0)
        await killed.kill()
        with pytest.raises(openai.APIConnectionError):
            await saying
    hotel.release()
    async with started(cli, *given(hotel)) as served:
        chat = Chat(served.client())
        assert is_question(asked := await chat.say(BOOK))
        assert "nobody knows whether it finished: run it again?" in asked
        await chat.say("no")
        assert hotel.counted("r1")["booked"] == 1
        assert "r1 is booked" in await Chat(served.client()).say(BOOK), "what is over is over: this is a new request"


async def test_the_answer_that_counted_is_told_again_and_the_other_refused(cli: CommandLine, hotel: Hotel) -> None:
    async with started(cli, *given(hotel)) as one, started(cli, *given(hotel)) as two:
        asked = Chat(one.client())
        await asked.say(BOOK)

        def window(client: openai.AsyncOpenAI) -> Chat:
            return Chat(client, messages=[*asked.messages])

        hotel.hold("before")
        saying = asyncio.create_task(window(one.client()).say("yes"))
        await until(lambda: hotel.counted("r1")["held-before"] > 0)
        losing = asyncio.create_task(window(two.client()).say("no"))
        await asyncio.sleep(0.5)  # it waits for the session
        hotel.release()
        assert "r1 is booked" in await saying
        with pytest.raises(openai.BadRequestError):
            await losing
        assert "decided already" in await window(one.client()).say("yes")
        with pytest.raises(openai.BadRequestError):
            await window(two.client()).say("no")
        assert hotel.counted("r1")["booked"] == 1
