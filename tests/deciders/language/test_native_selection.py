"""Selection by a model in this process with native tool calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.gguf_model import write_tiny_gguf
from support.openai_models import source_of
from support.packets import CONTEXT, FILES, done, packet, tool, with_output

from packetgate.deciders.advice import Advisers
from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.language.answer import respond_by_model
from packetgate.deciders.language.evidence import likelier_selection
from packetgate.deciders.language.prompting import (
    ASK,
    MIN_FULL_TOOLS,
    SHOW,
    offered_tool,
    tool_offer,
    tool_text_for,
)
from packetgate.deciders.language.selection import (
    requested_calls,
    select_by_model,
    without_needless_arguments,
)
from packetgate.deciders.packets import facts_of
from packetgate.deciders.protocols import SelectedCall, Selection
from packetgate.models.call_syntax import DEFAULT_SYNTAX
from packetgate.models.decoding import WrittenCall
from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.openai.compatible import openai_tool
from packetgate.plugins import installed
from packetgate.ranking.choice import PaletteRequest, choose_palette
from packetgate.reflex.calls import select as select_by_reading
from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.sections import Access, Context
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.tokens import ESTIMATE
from packetgate.toolsets.builtin.undo_store import UndoStore
from packetgate.toolsets.servers.opening import builtin_servers

GREEDY = CONTEXT.model_copy(update={"selection_temperature": 0.0, "selection_max_tokens": 300})
READ = ("files.read_file", {"path": "a.txt"})

Writing = Callable[[str], LlamaCppModel]


@pytest.fixture
def writing(llama_cpp_installed: None, tmp_path: Path) -> Writing:
    """Return a model that always returns the same text."""
    return lambda text: LlamaCppModel.load(str(write_tiny_gguf(tmp_path / "writing.gguf", text)), {"n_threads": 1})


async def select(
    model: LlamaCppModel, request: str = "Read a.txt", context: RoutingContext = GREEDY, **palette: str
) -> Selection:
    return await select_by_model(source_of(model), packet(request, **palette), FILES, context, advisers=ADVISERS)


ADVISERS = Advisers.of(installed())
UNCLEAR = "What was it again that I put into a.txt, can you tell me?"
"""A request for which `reflex` is unsure of a call."""


async def test_a_call_has_its_arguments_and_probabilities(writing: Writing):
    chosen = await select(writing(DEFAULT_SYNTAX.write([READ])), UNCLEAR)
    (call,) = chosen.calls
    assert (call.tool_name, call.params) == READ
    assert chosen.decided_by == "model"
    assert chosen.confidence_source is ConfidenceSource.MEASURED
    assert chosen.call_probability is not None
    assert chosen.call_probability > 0.9
    assert call.evidence.keys() == {"written", "acts", "name", "arguments"}


def test_few_tools_are_offered_in_full(writing: Writing):
    model = writing("Hello")
    offer = tool_offer(model, packet("Read a.txt"), FILES, ADVISERS)
    assert MIN_FULL_TOOLS <= len(offer.specs) < len(FILES)
    show, ask, *shown = offer.tools
    assert (show.name, ask.name) == (SHOW, ASK)
    assert "files.read_file" in {one.name for one in shown}
    others = {*FILES} - {one.name for one in offer.specs}
    assert {*show.parameters["properties"]["names"]["items"]["enum"]} == others


def test_an_offer_grows_at_its_end_and_starts_anew_if_it_is_too_large(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
):
    model, asked = writing("Hello"), packet("Read a.txt")
    first = tool_offer(model, asked, FILES, ADVISERS)
    other = min({*FILES} - {spec.name for spec in first.specs})
    asked = asked.model_copy(update={"context": asked.context.changed(offered_tools=(other, "gone.tool"))})
    grown = tool_offer(model, asked, FILES, ADVISERS)
    assert grown.specs[0].name == other
    assert {*first.specs} < {*grown.specs}
    assert grown.tools[0].prompt_format == first.tools[0].prompt_format
    monkeypatch.setattr(LlamaCppModel, "context_size", 100)
    assert tool_offer(model, asked, FILES, ADVISERS).specs == first.specs


def test_a_model_on_this_machine_is_offered_tools_in_brief():
    sort = {"type": "string", "enum": ["name", "size"], "default": "name", "description": "What comes first."}
    name = {"type": "string", "minLength": 1, "description": "The file's name, a part of it, or a pattern: *.csv."}
    long = "Find files by name or size, in this folder and in all folders that are below it. Returns: their paths."
    find = tool("files.find", "name", description=long, name=name, sort=sort)
    shown = offered_tool(find, in_brief=True)
    function = shown.prompt_format["function"]
    assert function["description"] == "Find files by name or size, in this folder and"
    assert function["parameters"] == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "sort": {"type": "string", "enum": ["name", "size"]}},
        "required": ["name"],
    }
    assert shown.parameters == offered_tool(find).parameters  # a grammar enforces this
    assert openai_tool(shown, plain=False) == shown.prompt_format


async def test_the_built_in_tools_are_offered_whole(writing: Writing, tmp_path: Path):
    servers = builtin_servers(tmp_path, undo=UndoStore(tmp_path / "undo"))
    tools = Catalogue([spec for server in servers.values() for spec in server.tool_specs()])
    assert len(tools) == 15
    model = writing("Hello")
    texts = [tool_text_for(model)(spec, "full") for spec in tools.values()]
    assert sum(map(ESTIMATE.count, texts)) <= 1_500
    request = PaletteRequest("", Access.READ, 128, 1_500, text=tool_text_for(model))
    full_palette = choose_palette(request, tools)
    offers = []
    for words in ("Which file is the largest?", "Delete a.txt"):
        asked = packet(words, catalogue=tools)
        asked = asked.model_copy(update={"context": asked.context.changed(palette=full_palette.entries)})
        offers.append(tool_offer(model, asked, tools, ADVISERS))
    assert offers[0].tools == offers[1].tools
    assert [one.names_all for one in offers] == [True, True]
    assert ["sort of ai.find: What comes first" in one.hint for one in offers] == [True, False]
    assert ["path of ai.delete: The file or" in one.hint for one in offers] == [False, True]


def test_a_tool_that_the_model_asked_for_is_shown_in_full(writing: Writing):
    delete = tool(
        "files.delete", "path", path={"type": "string", "description": "Folder."}, description="One two. " * 9
    )
    tools = Catalogue([*FILES.values(), delete])
    asked = packet("Do it", catalogue=tools)
    palette = [
        one.changed(reason="described" if one.tool_name == delete.name else "ranked") for one in asked.context.palette
    ]
    asked = asked.model_copy(update={"context": asked.context.changed(palette=tuple(palette))})
    assert delete.full_text in tool_offer(writing("Hello"), asked, tools, ADVISERS).hint


async def test_a_turn_that_needs_no_tool_is_answered(writing: Writing):
    small_talk = packet("Hello").model_copy(update={"tool_routing": None, "context": Context()})
    answer = await respond_by_model(source_of(writing("Hello")), small_talk, FILES, GREEDY, advisers=ADVISERS)
    assert answer.text == "Hello"


def test_default_arguments_are_removed():
    path, lines, deep = {"type": "string", "default": "."}, {"type": "integer", "default": 0}, {"type": "boolean"}
    listing = Catalogue([tool("files.list", "path", path=path, lines=lines, deep=deep)])
    call = WrittenCall("files.list", {"path": ".", "lines": 0, "deep": False}, 0.9, {"path": 0.5, "lines": 0.1})
    facts = facts_of(packet("List the folder"), listing)
    assert without_needless_arguments(call, listing, lambda: facts.sources) == WrittenCall(
        "files.list", {"path": ".", "deep": False}, 0.9, {"path": 0.5, "deep": 1.0}
    )
    other = WrittenCall("files.list", {"path": ".", "lines": False})
    assert without_needless_arguments(other, listing, lambda: facts.sources).arguments == other.arguments


@pytest.mark.parametrize(
    ("request_", "kept"),
    [
        ("Find hats", {"what": "hats"}),
        ("Find two hats in red", {"what": "hats", "count": 2, "colour": "red"}),
        ("Find 2 hats", {"what": "hats", "count": 2}),
        ("Find hats, long lasting ones", {"what": "hats", "kinds": ["long_lasting"]}),
    ],
)
def test_invented_optional_arguments_are_removed(request_: str, kept: dict[str, Any]):
    colour, text = {"enum": ["red", "blue"]}, {"type": "string"}
    kinds = {"type": "array", "items": text}
    shop = Catalogue(
        [tool("shop.find", "what", what=text, count={"type": "integer"}, colour=colour, kinds=kinds, sort=text)]
    )
    unsure, sure = {"what": 0.5, "count": 0.6, "colour": 0.4, "kinds": 0.5}, {"sort": 0.95}
    written = {"what": "hats", "count": 2, "colour": "red", "kinds": ["long_lasting"], "sort": "price"}
    call = WrittenCall("shop.find", written, 0.9, unsure | sure)
    left = without_needless_arguments(call, shop, lambda: facts_of(packet(request_), shop).sources)
    assert left.arguments == kept | {"sort": "price"}
    assert left.probabilities.keys() == left.arguments.keys()


@pytest.mark.parametrize(
    ("request_", "paths", "held"),
    [
        ("Read a.txt", ["a.txt", "a.txt"], ["a.txt"]),
        ("Read a.txt", ["a.txt", "made-up.txt"], ["a.txt"]),
        ("Read a.txt, b.txt", ["a.txt", "b.txt", "a.txt"], ["a.txt", "b.txt"]),
        ("Read a.txt and list docs", ["a.txt", "./docs"], ["a.txt", "./docs"]),
    ],
)
def test_calls_beyond_the_parts_of_the_request_are_dropped(request_: str, paths: list[str], held: list[str]):
    calls = [WrittenCall("files.read_file", {"path": path}) for path in paths]
    assert [one.arguments["path"] for one in requested_calls(calls, request_)] == held


async def test_an_endless_call_falls_back_to_reflex(writing: Writing):
    source = source_of(writing(DEFAULT_SYNTAX.write([READ])))
    short = GREEDY.model_copy(update={"selection_max_tokens": 20})
    chosen = await language_deciders(source, source).selector(packet(UNCLEAR), FILES, short)
    assert (chosen.is_fallback, chosen.decided_by) == (True, "reflex")
    assert "selection_max_tokens" in chosen.fallback_reason


@pytest.mark.parametrize(
    ("request_", "made_up", "action"),
    [
        ("Tell me a joke about penguins", ("files.read_file", {"path": "lisbon.txt"}), "none"),
        ("Write to a.txt", ("files.write_file", {"path": "plan.md", "content": "Lorem ipsum"}), "clarify"),
        ("Show me what is in plan.md", ("files.read_file", {"path": "plan.md"}), "call"),
    ],
)
@pytest.mark.parametrize("how_sure", ["quite", "not known"])
def test_an_improbable_call_is_not_made(request_: str, made_up: tuple[str, dict[str, Any]], action: str, how_sure: str):
    measured = {"quite": {"name": 7.0, "arguments": -0.5}, "not known": {}}
    name, params = made_up
    call = SelectedCall(tool_name=name, params=params, evidence={"written": 1.0, **measured[how_sure]})
    chosen = Selection(action="call", calls=(call,), confidence=0.7, decided_by="model", reasoning="")
    given = packet(request_)
    found = likelier_selection(chosen, select_by_reading(given, FILES), given, FILES, ADVISERS)
    assert found.action == action


def test_the_rules_are_not_named_as_decider_if_no_call_is_probable():
    given = packet("say something nice to nobody")
    unlikely = SelectedCall(tool_name="files.delete_file", params={"path": "b.txt"}, evidence={"written": 1.0})
    chosen, rules = (
        Selection(action="call", calls=(unlikely,), confidence=0.7, decided_by=who, reasoning="")
        for who in ("model", "reflex")
    )
    found = likelier_selection(chosen, rules, given, FILES, ADVISERS)
    assert (found.action, found.decided_by, found.is_fallback) == ("none", "model", False)
    assert found.reasoning == "no call is likely enough to be right"


async def test_a_likelier_call_of_reflex_replaces_the_models(writing: Writing):
    other = ("files.read_file", {"path": "notes"})
    chosen = await select(writing(DEFAULT_SYNTAX.write([other])), "Read a.txt")
    assert [(one.tool_name, one.params) for one in chosen.calls] == [READ]
    assert (chosen.decided_by, chosen.is_fallback) == ("reflex", True)


LONG = " and a pear" * 40


@pytest.mark.parametrize(
    ("request_", "says", "output", "is_shown"),
    [
        ("Read a.txt", "Here it is.", f"11 apples{LONG}", True),
        ("How many apples are in a.txt?", "There are 11 apples and nothing else.", "11 apples", False),
        ("How many apples are in a.txt?", "There are 11.", "11 apples", True),
        ("How many apples are in a.txt?", "There are 11.", f"11 apples{LONG}", False),
        ("How many apples are in a.txt?", "There are 3.", f"11 apples{LONG}", True),
    ],
)
async def test_results_that_an_answer_omits_are_shown_below_it(
    writing: Writing, request_: str, says: str, output: str, is_shown: bool
):
    given = packet(request_, with_output(done("files.read_file", path="a.txt"), output))
    answer = await respond_by_model(source_of(writing(says)), given, FILES, GREEDY)
    assert answer.text == says
    assert ("11 apples" in answer.appendix) is is_shown
