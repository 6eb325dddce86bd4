"""Intent by a real chat model: what it is asked, and what its answer becomes."""

import pytest
from support.packets import CONTEXT, Shelf, asking, packet
from support.prompts import intent, last, sent, system
from support.scripted_openai import ScriptedOpenAI

from deciders.choosing import language_deciders
from deciders.language.intent import detect_by_model
from models.model import ModelSource
from state.context import RoutingContext
from state.errors import DecisionError
from state.sections import Access, DataField


async def test_needs_a_tool(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(intent(needs_tool=True, access="write", user_intent="write it"))
    decision = await detect_by_model(model, asking("Please see to it"), Shelf(), CONTEXT)
    assert (decision.needs_tool, decision.access, decision.user_intent) == (True, Access.WRITE, "write it")
    assert (decision.decided_by, decision.confidence, decision.is_fallback) == ("model", 0.9, False)
    assert decision.usage.input_tokens > 0
    assert decision.usage.output_tokens > 0
    assert "- files (5 tools): files 5; read_file, " in system(scripted_openai)
    assert last(scripted_openai) == "Request:\nPlease see to it"


@pytest.mark.parametrize("words", ["Hello", "Thanks!", "Good morning, how are you?"])
async def test_small_talk_is_not_asked_about(model: ModelSource, scripted_openai: ScriptedOpenAI, words: str):
    shelf = Shelf()
    decision = await detect_by_model(model, asking(words), shelf, CONTEXT)
    assert (decision.needs_tool, shelf.asked, scripted_openai.requests) == (False, 0, [])


async def test_sampling(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(intent(needs_tool=False))
    await detect_by_model(model, asking("Well, do it"), Shelf(), RoutingContext(selection_temperature=0.3))
    assert scripted_openai.requests[0]["temperature"] == 0.3


async def test_malformed_twice_raises(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script("Certainly!", '{"needs_tool": "perhaps", "confidence": 0.5}')
    with pytest.raises(DecisionError, match="needs_tool"):
        await detect_by_model(model, asking("See to it"), Shelf(), CONTEXT)
    assert len(scripted_openai.requests) == 2


async def test_reflexes_stand_in_and_say_so(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script("Certainly!", "I would rather not.")
    decision = await language_deciders(model, model).intent(asking("Read README.md"), Shelf(), CONTEXT)
    assert (decision.needs_tool, decision.is_fallback, decision.decided_by) == (True, True, "reflex")
    assert "asked twice" in decision.fallback_reason
    assert "I would rather not" in decision.fallback_reason


async def test_a_later_pass_shows_what_is_known(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(intent(needs_tool=False))
    known = DataField(
        key="tool_result:1",
        type="tool_execution_result",
        source="files.read_file",
        value={"tool": "files.read_file", "success": True, "status": "executed", "output": "apples"},
    )
    given = packet("Read a.txt", data=(known,), history=(("Hi", "Hello!"),), reinjection_count=1)
    await detect_by_model(model, given, Shelf(), CONTEXT)
    assert sent(scripted_openai)[1:3] == [("user", "Hi"), ("assistant", "Hello!")]
    fence = f"<<<tool output {given.header.packet_id}: files.read_file succeeded>>>"
    assert f"{fence}\napples\n" in last(scripted_openai)


async def test_history_is_shown_without_leaked_markup(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(intent(needs_tool=False))
    past = (("Read a", "<think>x</think>Apples.<tool_call>{}</tool_call>"), ("And b?", '{"tool": "b", "params": {}}'))
    await detect_by_model(model, packet("See to it", history=past), Shelf(), CONTEXT)
    assert sent(scripted_openai)[1:-1] == [("user", "Read a"), ("assistant", "Apples."), ("user", "And b?")]


@pytest.mark.parametrize(
    ("words", "access"),
    [("Read a.txt", Access.READ), ("Read a.txt and write it to b.txt", Access.WRITE), ("Run ls", Access.READ)],
)
async def test_once_results_are_read_the_access_stays_within_the_users_words(
    model: ModelSource, scripted_openai: ScriptedOpenAI, words: str, access: Access
):
    scripted_openai.script(intent(needs_tool=True, access="write"))
    later = packet(words)
    assert later.tool_routing is not None
    decision = await detect_by_model(model, later, Shelf(), CONTEXT)
    assert decision.access is access
