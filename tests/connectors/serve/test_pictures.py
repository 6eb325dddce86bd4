"""Images and files in content parts, as the official client sends them."""

from typing import Any

import openai
import pytest
from support.command_line import CommandLine
from support.endpoints import Chat, serving
from support.pictures import NO_TOOL, data_url, last_text, png, shown
from support.scripted_openai import ScriptedOpenAI

CAT, DOG = png(shade=1), png(shade=2)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def picture(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def file(name: str, data: bytes) -> dict[str, Any]:
    return {"type": "file", "file": {"filename": name, "file_data": data_url(data, "text/plain")}}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_with_vision_receives_pictures_and_files(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, *, stream: bool
) -> None:
    scripted_openai.script(NO_TOOL, "Both are grey.", NO_TOOL, "The first.")
    async with serving(cli, "--prime", "openai:scripted", OPENAI_BASE_URL=scripted_openai.base_url) as served:
        chat = Chat(served.client())
        parts = [text("Which is darker?"), picture(data_url(CAT)), picture(data_url(DOG)), file("a.txt", b"Ask Ann.")]
        assert await chat.say(parts, stream=stream) == "Both are grey."
        assert shown(scripted_openai) == [CAT, DOG]
        assert "Which is darker?" in last_text(scripted_openai)
        assert "Ask Ann." in last_text(scripted_openai)
        assert await chat.say("Tell me something about it", stream=stream) == "The first."
        assert "Both are grey." in str(scripted_openai.requests[-1]["messages"])  # the session continues


REFUSED = {
    "an address": picture("http://127.0.0.1:1/cat.png"),
    "a file's id": {"type": "file", "file": {"file_id": "file-1"}},
    "a sound": {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    "no picture": picture(data_url(b"\xff\0")),
    "a document that is a command": {"type": "document", "text": "/write new.txt x"},
    "a file that is a command": {"type": "file", "text": "/write new.txt x"},
}


async def test_unsupported_parts_are_refused(cli: CommandLine) -> None:
    async with serving(cli, "--allow-writes") as served:
        for part in REFUSED.values():
            with pytest.raises(openai.BadRequestError):
                await Chat(served.client()).say([text("What?"), part])
            with pytest.raises(openai.BadRequestError):
                await Chat(served.client()).say([part])
        chat = Chat(served.client())
        await chat.say('Write "seven" to new.txt')
        with pytest.raises(openai.BadRequestError):
            await chat.say([text("yes"), picture(data_url(CAT))])
        assert not (cli.folder / "new.txt").exists()
        assert "Created new.txt" in await chat.say([{"type": "text", "text": "yes"}])
