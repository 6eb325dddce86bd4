"""Pages of real turns: one that asked for approval, and one in which a model, a tool and a user were hostile."""

import asyncio
from pathlib import Path

from support.archives import keeping
from support.hostile_packet import HOSTILE
from support.notebook import Notebook
from support.openai_models import model_at
from support.prompts import BROKEN, call, first_call, review
from support.scripted_openai import serve_scripted_openai

from packetgate.connectors.trace.page import page
from packetgate.deciders.choosing import language_deciders
from packetgate.models.openai.model import OpenAICompatible


def approved_turn(folder: Path) -> Path:
    """Return the page of a turn that read, asked, wrote, and corrected a call that could not be read."""
    script = [first_call("notebook.read_note", name="a"), review(0.9), BROKEN]
    script += [call("notebook.write_note", name="b", text="x"), review(0.8), "I read a and wrote b."]
    return asyncio.run(_page(folder, Notebook(), "Read a, then write x to b", script))


def hostile_turn(folder: Path) -> Path:
    """Return the page of such a turn in which everybody says what would be markup."""
    script = [first_call("notebook.read_note", name="a"), review(0.9)]
    script += [call("notebook.write_note", name="b", text=HOSTILE), review(0.8), HOSTILE]
    return asyncio.run(_page(folder, Notebook(a=HOSTILE), f"Read a, then write it to b {HOSTILE[:-4]}", script))


async def _page(folder: Path, notebook: Notebook, request: str, script: list[str]) -> Path:
    with serve_scripted_openai() as scripted:
        model = await model_at(scripted)

        async def source() -> OpenAICompatible:
            return model

        deciders = language_deciders(source, source)
        scripted.script(*script)
        async with keeping(folder, deciders, notebook, allow_write_tools=True) as kept:
            await kept.talk.ask(request)
            packet = await kept.talk.reply("yes")
            past = await kept.find(packet.header.packet_id)
    file = folder / "page.html"
    await asyncio.to_thread(file.write_text, page(past), "utf-8")
    return file
