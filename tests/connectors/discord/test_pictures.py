"""Pictures that tools return: uploaded where they were asked for, if they are what they are declared to be."""

import json
from hashlib import sha256
from pathlib import Path

from support.discord_bots import ADA_ALONE, Workshop
from support.discord_payloads import ADA, BOT, LAB, LOBBY
from support.discord_rest import Arrived
from support.discord_server import DiscordStandIn
from support.media_server import PNG, entry

from packetgate.connectors.discord.messages import pictures_of
from packetgate.connectors.opening import open_sessions
from packetgate.state.routing import ResultAttachment
from packetgate.tools.text.result_store import ResultStore, session_results


def uploads(discord: DiscordStandIn) -> list[Arrived]:
    return [one for one in discord.arrived if one.files]


async def test_a_picture_follows_the_answer_and_nothing_else_does(discord: DiscordStandIn, workshop: Workshop):
    config = workshop.folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"media": entry()}, "builtin": True}))
    settings = workshop.settings.model_copy(update={"mcp_config": config})
    async with open_sessions(settings) as sessions, workshop.bot(ADA_ALONE, sessions):
        for tool in ("get_page", "get_poster", "get_blob", "get_sound"):
            words = f"<@{BOT}> Get the {tool.removeprefix('get_')} with media.{tool}"
            await discord.say(ADA, LAB, words, mentions=[BOT])
            answer = await discord.answer(LAB, f"media.{tool}")
            assert "is not shown here" in answer["content"]
        assert uploads(discord) == []
        await discord.say(ADA, LOBBY, f"<@{BOT}> Get the picture with media.get_picture", mentions=[BOT])
        await discord.answer(LOBBY, "drawn")
        (sent,) = await discord.until(lambda: uploads(discord))
    assert (sent.method, sent.path) == ("POST", f"/channels/{LOBBY}/messages")
    assert sent.files == {"image-1.png": PNG}


def test_a_file_that_was_changed_is_not_sent(tmp_path: Path):
    kept = ResultStore(tmp_path / "kept")
    with session_results("one"):
        handle = kept.keep(PNG)
    about = {"kind": "image", "mime_type": "image/png", "size": len(PNG), "handle": handle}
    one = ResultAttachment.model_validate({**about, "sha256": sha256(PNG).hexdigest()})
    assert len(pictures_of([one], kept, "one")[0]) == 1
    assert pictures_of([one], kept, "two")[0] == []
    file = kept.file(handle, "one")
    assert file is not None
    file.write_bytes(PNG[:-1] + b"!")
    assert pictures_of([one], kept, "one")[0] == []
