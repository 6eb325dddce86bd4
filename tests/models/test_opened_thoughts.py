"""A thought that the chat template opened, so that only its end is written, is never shown while it streams."""

from dataclasses import dataclass

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph
from support.openai_models import GOOD, ask, model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import Message, Reply, Thinks

from packetgate.models.completion import complete
from packetgate.models.model import Model
from packetgate.state.errors import DecisionError

LENGTH = 50
THOUGHT = "They ask when it opens. The plan says seven, so seven it is."
ANSWER = "It opens at seven, says the plan."


async def show(model: Model) -> list[str]:
    """Return what a front end that listens is shown, piece by piece."""

    async def node(state: dict[str, str]) -> dict[str, str]:
        await complete(model, [HumanMessage("Speak.")], user_words="", temperature=0.7, max_tokens=LENGTH)
        return {}

    graph = StateGraph(dict)
    graph.add_node("speak", node)
    graph.add_edge(START, "speak")
    return [part[0].text async for part in graph.compile().astream({}, stream_mode="messages") if part[0].text]


@dataclass(frozen=True)
class Case:
    """What a server streams, and which of its first two answers come in pieces."""

    name: str
    reply: Reply
    in_pieces: tuple[bool, bool]


CASES = [
    Case("opened by the template", f"{THOUGHT}</think>\n\n{ANSWER}", (True, True)),
    Case("opened, in Magistral's marks", f"{THOUGHT}[/THINK]{ANSWER}", (True, True)),
    Case("opened, and nearly as long", f"{THOUGHT * 9}</think>{ANSWER}", (True, True)),
    Case("opened by the model", f"<think>{THOUGHT}</think>{ANSWER}", (True, True)),
    Case(
        "opened by the model, with a channel", f"<|channel|>analysis<|message|>{THOUGHT}<|end|>{ANSWER}", (True, True)
    ),
    Case("no thoughts", ANSWER, (False, True)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_no_thought_is_ever_shown(case: Case, scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.script(case.reply, case.reply)
    shown = [await show(model) for _ in range(2)]
    assert ["".join(pieces) for pieces in shown] == [ANSWER, ANSWER]
    assert tuple(len(pieces) > 1 for pieces in shown) == case.in_pieces


async def test_a_thought_that_the_server_sends_beside_the_text(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.script(Thinks(20, ANSWER))
    assert "".join(await show(model)) == ANSWER
    assert model.thoughts.opened is False


async def test_openai_shows_no_thoughts_so_nothing_is_held_back(scripted_openai: ScriptedOpenAI):
    scripted_openai.script(ANSWER)
    assert len(await show(await model_at(scripted_openai, is_openai=True))) > 1


async def test_what_an_answer_in_a_form_shows_is_known_for_the_first_words(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.script(Message({"content": GOOD, "reasoning_content": THOUGHT}), ANSWER)
    await ask(model)
    assert len(await show(model)) > 1


@pytest.mark.parametrize("known", [None, True])
async def test_one_that_is_cut_off_before_its_end_is_asked_for_again(
    known: bool | None, scripted_openai: ScriptedOpenAI
):
    model = await model_at(scripted_openai)
    model.thoughts.opened = known
    scripted_openai.script(Message({"content": THOUGHT}, "length"), f"{THOUGHT}</think>{ANSWER}")
    model.chat.disable_streaming = True
    assert "".join(await show(model)) == ANSWER
    first, second = (request["max_tokens"] for request in scripted_openai.requests)
    assert second > first
    scripted_openai.script(*[Message({"content": THOUGHT}, "length")] * 9)
    with pytest.raises(DecisionError, match="was cut off in its thoughts"):
        await show(model)


async def test_a_stream_that_is_cut_off_in_it_shows_nothing(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    model.thoughts.opened = True
    scripted_openai.script(*[Thinks(0, "so " * 40_000)] * 9)
    with pytest.raises(DecisionError, match="was cut off in its thoughts"):
        await show(model)
