"""Prompts of a turn's stages are stored as sent for some days; without a model nothing is stored."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore
from support.notebook import Notebook
from support.prompts import NO_TOOL, call, review, sent
from support.scripted_openai import ScriptedOpenAI
from support.usage import recording

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.graph.records import PROMPTS, StagePrompts, forget_records, read_prompts, save_prompts
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.state.base import now
from packetgate.tools.usage.store import read_usage

READ = call("notebook.read_note", name="a")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[BaseStore]:
    """A store in a separate SQLite file."""
    async with open_store(Settings(home=tmp_path)) as opened:
        yield opened


def all_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_every_message_is_stored_as_sent(
    by_model: Deciders, scripted_openai: ScriptedOpenAI, store: BaseStore, notebook: Notebook
) -> None:
    scripted_openai.script(READ, review(0.9), "Apples <think>hm</think>.")
    async with recording(by_model, store, notebook) as talk:
        packet = await talk.say('Read a: \N{GREEN APPLE} "quoted"\nand more')
    kept = await read_prompts(store, "session", packet.header.packet_id)
    assert [(heard.stage, heard.role) for heard in kept] == [
        ("select_tool", "lite"),
        ("review_selection", "prime"),
        ("select_tool", "lite"),
    ]
    exchanges = [one for heard in kept for one in heard.exchanges]
    for number, one in enumerate(exchanges):
        request = scripted_openai.requests[number]
        assert [(message.role, message.text) for message in one.messages] == sent(scripted_openai, number)
        assert one.options["temperature"] == request["temperature"]
        assert one.model == f"scripted at {scripted_openai.base_url}"
        assert one.usage.input_tokens > 0
        assert one.duration_ms > 0
    written = [one.answer for one in exchanges]
    assert written[1:] == [review(0.9), "Apples <think>hm</think>."]
    assert written[0].endswith('[{"name": "notebook__read_note", "arguments": {"name": "a"}}]')


async def test_no_key_is_stored(
    scripted_openai: ScriptedOpenAI, store: BaseStore, notebook: Notebook, tmp_path: Path
) -> None:
    key = scripted_openai.api_key = "sk-very-secret-key"
    model = OpenAICompatible(await asyncio.to_thread(connect, "m", Endpoint(scripted_openai.base_url, key, timeout=10)))

    async def source() -> OpenAICompatible:
        return model

    scripted_openai.script(NO_TOOL, "Hi.")
    async with recording(language_deciders(source, source), store, notebook) as talk:
        packet = await talk.say("What is new?")
    assert packet.response.candidate == "Hi."
    written = all_bytes(tmp_path)
    assert b"What is new?" in written
    assert key.encode() not in written


async def test_nothing_is_stored_if_disabled(
    by_model: Deciders, scripted_openai: ScriptedOpenAI, store: BaseStore, notebook: Notebook
) -> None:
    scripted_openai.script(NO_TOOL, "Hi.")
    async with recording(by_model, store, notebook, prompt_days=0) as talk:
        await talk.say("What is new?")
    assert len((await read_usage(store)).records) == 1
    assert await store.asearch(PROMPTS) == []


def with_prompt_record(packet_id: str, session: str = "s", days_ago: float = 0.0) -> StagePrompts:
    return StagePrompts(
        session_id=session,
        packet_id=packet_id,
        stage="respond",
        role="prime",
        at=now() - timedelta(days=days_ago),
        exchanges=(),
    )


async def test_forgetting_a_session_deletes_its_prompts(store: BaseStore) -> None:
    for session in ("s", "other"):
        await save_prompts(store, with_prompt_record("p", session))
    await forget_records(store, "s")
    assert [bool(await read_prompts(store, session, "p")) for session in ("s", "other")] == [False, True]
