"""Provide perfect models that answer immediately, and catalogues of any size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import count, islice, product
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatResult
from pydantic import PrivateAttr

from benchmarks.ranking.data import tool_spec
from benchmarks.tokens.others import RecordingChat
from packetgate.deciders.language.prompting import SHOW
from packetgate.models.decoding import WrittenCall
from packetgate.models.model import ChatCaller, Model, ModelAnswer, OfferedTool, WordProbabilities
from packetgate.ranking.ranking import ranking_of
from packetgate.reflex.meaning.encoder import Floats, Vectors, encoded_text, sentence_encoder
from packetgate.reflex.meaning.ranker import SemanticModel
from packetgate.state.base import TokenUsage
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.descriptions import listed_name
from packetgate.tools.spec.tool_spec import ToolSpec

VERBS = "list find get search count compare create update delete archive".split()
THINGS = (
    "invoices orders customers tickets branches commits events rooms flights recipes songs photos plants sensors loans "
    "parcels lessons patients meters tenders"
).split()
PROPERTIES = {
    "name": {"type": "string", "description": "Which one, by its name."},
    "since": {"type": "string", "description": "The first day, as YYYY-MM-DD."},
    "limit": {"type": "integer", "description": "Most of them.", "default": 20},
}


class ReadyChat(RecordingChat):
    """Selects its tool from a list of names, calls the tool if it is offered, and then answers."""

    tool: str
    params: dict[str, Any]
    words: str
    _ids: Iterator[int] = PrivateAttr(default_factory=lambda: count(1))

    def reply(self, messages: Sequence[BaseMessage], **options: Any) -> AIMessage:
        """Return the call of the tool, or the answer."""
        given = [tool["function"]["name"] for tool in options.get("tools", ())]
        if given and self.tool not in given:  # the model fills the schema of a selection
            return self._called(given[0], {"tools": [self.tool]})
        if given and not isinstance(messages[-1], ToolMessage):
            return self._called(self.tool, self.params)
        return AIMessage(self.words)

    def _called(self, name: str, args: dict[str, Any]) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": name, "args": args, "id": str(next(self._ids))}])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, None, **options)


class ReadyModel(Model):
    """Calls the tool of its chat model if the tool is offered, approves the call, and answers from the result."""

    chat: ReadyChat

    async def call(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[OfferedTool],
        *,
        max_calls: int,
        sampling: dict[str, Any],
        must_call: bool = False,
        caller: ChatCaller | None = None,
    ) -> ModelAnswer:
        """Return the right call, in the shortest form."""
        if isinstance(messages[-1], ToolMessage):
            return ModelAnswer(self.chat.words, TokenUsage())
        server, _, upstream = self.chat.tool.partition(".")
        name = listed_name(server, upstream)
        call = WrittenCall(name, self.chat.params)
        if name not in [one.name for one in tools]:
            call = WrittenCall(SHOW, {"names": [self.chat.tool]})
        return ModelAnswer("", TokenUsage(), calls=(call,))

    async def word_probabilities(
        self, messages: Sequence[BaseMessage], words: tuple[str, ...], **options: Any
    ) -> WordProbabilities:
        """Answer yes."""
        return WordProbabilities({}, TokenUsage(), words[0])


def reading_tool(name: str) -> ToolSpec:
    """Return a tool that reads a file."""
    path = {"type": "string", "description": "The file, relative to the working folder."}
    schema = {"type": "object", "properties": {"path": path}, "required": ["path"], "additionalProperties": False}
    server, _, upstream = name.partition(".")
    return tool_spec(upstream, "Read the complete contents of a text file.", schema, key=name, server=server)


@cache
def office_tools() -> tuple[ToolSpec, ...]:
    """Return a few hundred made-up tools, some of them writes."""
    schema = {"type": "object", "properties": PROPERTIES, "required": ["name"], "additionalProperties": False}
    return tuple(
        tool_spec(
            f"{verb}_{thing}", f"{verb.capitalize()} the {thing} of a branch, by name and day.", schema,
            key=f"office.{verb}_{thing}", server="office", rated=True,
        )
        for thing, verb in product(THINGS, VERBS)
    )  # fmt: skip


class Copies:
    """Gives a copied tool the vector of its original, and other texts the vector of the shipped encoder."""

    def __init__(self, originals: Mapping[str, str]) -> None:
        """`originals` maps the text of each copy to the text of its original."""
        self._originals = originals
        self.name, self.floor = sentence_encoder().name, sentence_encoder().floor

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return a vector for each text."""
        return sentence_encoder().vectors([self._originals.get(one, one) for one in texts])


def grown(originals: Sequence[ToolSpec], number: int, *more: ToolSpec) -> Catalogue:
    """Return a catalogue of `number` tools with vectors: `more`, and copies of the originals. Blocking."""
    copies = ((_copy(one, at), one) for at in count() for one in originals)
    pairs = [*((one, one) for one in more), *islice(copies, number - len(more))]
    meaning = SemanticModel()
    meaning.fine = Vectors(Copies({encoded_text(copy): encoded_text(one) for copy, one in pairs}))
    catalogue = Catalogue([copy for copy, _ in pairs], ranker=meaning)
    ranking_of(catalogue).rank("warm up")
    meaning.fine.wait()
    _ = catalogue.ledger
    return catalogue


def _copy(spec: ToolSpec, at: int) -> ToolSpec:
    if not at:
        return spec
    name, own = f"{spec.name}_{at}", f"{spec.upstream_name}_{at}"
    return replace(spec, name=name, upstream_name=own, server=f"{spec.server}{at}")
