"""The model's list of tools: all tools if they are few, otherwise a growing list with `search_tools`."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from threading import Thread
from typing import Any, Literal, cast

from langchain.agents.middleware import ModelRequest, ModelResponse, ProviderToolSearchMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages import ToolCall as AgentCall
from langchain_core.tools import BaseTool, StructuredTool

from packetgate.graph.settings import shared_vectors_path
from packetgate.middleware.conversation import SERVER, GatedState, grown, shown_names, unprefixed_name
from packetgate.plugins import installed
from packetgate.ranking.choice import PaletteRequest, choose_palette
from packetgate.ranking.ranking import ranking_of
from packetgate.state.errors import ConfigError
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.reading import access_of
from packetgate.toolsets.servers.functions import defined_tool_spec, langchain_tool_spec, tool_definition

SEARCH = "search_tools"
"""Name of the tool that finds the tools that are not on the list."""
MAX_TOOLS = 40
FIRST_TOOLS, MORE_TOOLS, FOUND_TOOLS = 8, 3, 6
"""Number of tools at the start of the list, and the maximum numbers that a new request and a search add."""
MAX_NAMES = 300
"""Largest number of tools that a search names if it finds none."""
_TOKEN_BUDGET = 100_000
"""The palette's token budget. It is large because the number of tools is limited."""
_CATALOGUES = 16
"""Number of cached catalogues: threads may have other tools in addition to those of the middleware."""
SEARCH_TOOL = StructuredTool(
    name=SEARCH,
    description="Finds more tools, by what they do or by name, and puts them on your list of tools. Call it if no "
    "tool on your list fits.",
    args_schema={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    func=str,
)
"""The tool that finds tools; the middleware runs it."""


class ToolList:
    """Chooses the tools that the model sees, and knows the definitions of all tools of the agent.

    The agent's state holds all data of a thread, so that threads and processes can share a list.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool],
        preferences: Preferences,
        allowed: Sequence[str],
        *,
        max_tools: int,
        select: bool | Literal["provider"],
        unguarded: frozenset[str],
    ) -> None:
        """Choose from `tools` and those of each request; `allowed` are the patterns of tools that may run."""
        self.max_tools, self.select, self.unguarded = max_tools, select, unguarded
        self._preferences, self._allowed = preferences, tuple(allowed)
        self._specs = {tool.name: langchain_tool_spec(SERVER, tool) for tool in tools}
        self._catalogue = self._catalogue_of(self._specs.values())
        self._with_definitions = lru_cache(_CATALOGUES)(self._make_with_definitions)
        self._with_tools = lru_cache(_CATALOGUES)(self._make_with_tools)
        if select is True and len(self._specs) > max_tools:  # vectors are loaded, or computed in the background
            Thread(target=ranking_of(self._catalogue).rank, args=["tools"], name="tool ranking").start()

    def _selects(self, request: ModelRequest[Any]) -> bool:
        """Whether the model sees only some tools; not if LangChain's middleware lets the provider search them."""
        tools = [tool for tool in request.tools if isinstance(tool, BaseTool)]
        if not self.select or any((tool.extras or {}).get("defer_loading") for tool in tools):
            return False
        number = sum(tool.name not in self.unguarded for tool in tools)
        return number > self.max_tools or bool(shown_names(request.state))

    def number_wanted(self, request: ModelRequest[Any]) -> int:
        """Return how many tools are chosen for a request; 0 if the list does not change."""
        shown = shown_names(request.state)
        if not self._selects(request):
            return 0
        if not shown:
            return max(1, min(FIRST_TOOLS, self.max_tools - 1))
        may_grow = self.select is True and len(shown) < self.max_tools
        return MORE_TOOLS if may_grow and isinstance(request.messages[-1], HumanMessage) else 0

    def with_list(self, request: ModelRequest[Any], best: Sequence[str]) -> tuple[ModelRequest[Any], list[str]]:
        """Return the request with the tools on the model's list, including the `best`, and the new names on it."""
        if not self._selects(request):
            return request, []
        tools = {tool.name: tool for tool in request.tools if isinstance(tool, BaseTool)}
        if SEARCH in tools:
            raise ConfigError(f"{SEARCH} is the name of Packetgate's own tool: rename yours, or set select=False")
        shown = shown_names(request.state)
        more = [] if shown or self.select == "provider" else [SEARCH]
        more += [*(name for name in tools if name in self.unguarded), *best]
        names = grown(shown, [name for name in more if name in tools or name == SEARCH])
        if self.select == "provider":
            deferring = ProviderToolSearchMiddleware(searchable_tools=[name for name in tools if name not in names])
            found = deferring.wrap_model_call(request, lambda deferred: cast("ModelResponse[Any]", deferred))
            return cast("ModelRequest[Any]", found), names[len(shown) :]
        tools[SEARCH] = SEARCH_TOOL
        listed: list[BaseTool | dict[str, Any]] = [tool for tool in request.tools if not isinstance(tool, BaseTool)]
        listed += [tools[name] for name in names if name in tools]
        return request.override(tools=listed), names[len(shown) :]

    def best(self, request: ModelRequest[Any]) -> list[str]:
        """Return the names of the tools that fit the last message of the user. May block."""
        size, only_ranked = self.number_wanted(request), bool(shown_names(request.state))
        if not size:
            return []
        words = next((one.text for one in reversed(request.messages) if isinstance(one, HumanMessage)), "")
        wanted = PaletteRequest(words=words, access=access_of(words), size=size, token_budget=_TOKEN_BUDGET)
        palette = choose_palette(wanted, self._listing(request.tools))
        if only_ranked and not palette.subject_terms:
            return []
        entries = [entry for entry in palette.entries if not only_ranked or entry.reason != "default"]
        return [unprefixed_name(entry.tool_name) for entry in entries]

    def _search(self, query: str, catalogue: Catalogue, shown: Collection[str]) -> tuple[list[str], str]:
        """Return the tools that a search puts on the model's list, and its result. May block."""
        hits = ranking_of(catalogue).rank(query, limit=FOUND_TOOLS + len(shown))
        best = dict.fromkeys([*catalogue.tools_named_in(query), *(hit.name for hit in hits)])
        found = [name for name in best if unprefixed_name(name) not in shown][:FOUND_TOOLS]
        if found:
            lines = [f"- {unprefixed_name(name)}: {catalogue[name].brief}" for name in found]
            return [*map(unprefixed_name, found)], "\n".join(["These tools are on your list now:", *lines])
        rest = sorted({*map(unprefixed_name, catalogue)} - {*shown})
        names = f" The others are: {', '.join(rest)}." if len(rest) <= MAX_NAMES else ""
        return [], f"No tool that is not on your list matches {query!r}.{names}"

    def update(
        self,
        request: ModelRequest[Any],
        listed: ModelRequest[Any],
        response: ModelResponse[Any],
        more: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Return the state for the next step: the list, and the called tools that are not on it. May block if the model
        searches.

        A called tool that is not on the list is added. Searches are answered here, because only the request contains
        all tools of its thread.
        """
        called, state = {call["name"] for call in _calls_in(response)}, cast("GatedState", request.state)
        update = dict[str, Any]()
        shown = [*more]
        if called or state.get("unshown"):
            tools = {tool.name: tool for tool in listed.tools if isinstance(tool, BaseTool)}
            others = called - self._specs.keys() - self.unguarded - {SEARCH}
            added = {name: definition_of(tools[name]) for name in sorted(others & tools.keys())}
            if not added.items() <= (state.get("added") or {}).items():
                update["added"] = added
            if (unshown := sorted(called - tools.keys())) != (state.get("unshown") or []):
                update["unshown"] = unshown
            if listed is not request:
                shown += [one.name for one in request.tools if isinstance(one, BaseTool) and one.name in unshown]
                for query in searches_in(response):
                    found, text = self._search(query, self._listing(request.tools), [*shown_names(state), *shown])
                    shown += found
                    update["found"] = {**update.get("found", {}), query: text}
        return {**update, "shown": shown} if shown else update

    def catalogue(self, added: Mapping[str, Any] | None) -> Catalogue:
        """Return the tools given, and the others that the thread's model has called."""
        return self._with_definitions(json.dumps(added, sort_keys=True)) if added else self._catalogue

    def _make_with_definitions(self, added: str) -> Catalogue:
        specs = {name: _added_spec(definition) for name, definition in json.loads(added).items()}
        return self._catalogue_of({**specs, **self._specs}.values())

    def _listing(self, tools: Iterable[BaseTool | dict[str, Any]]) -> Catalogue:
        """Return the tools given and the others of a request."""
        others = [tool for tool in tools if isinstance(tool, BaseTool) and tool.name not in self._specs]
        return self._with_tools(_Same(others)) if others else self._catalogue

    def _make_with_tools(self, others: "_Same") -> Catalogue:
        return self._catalogue_of([*self._specs.values(), *(_added_spec(definition_of(tool)) for tool in others)])

    def _catalogue_of(self, specs: Iterable[ToolSpec]) -> Catalogue:
        ranker = installed().part("rankers")
        kept = ranker.kept_in(shared_vectors_path()) if ranker else None
        return Catalogue(specs, self._preferences, kept).restrict(self._allowed, SERVER)


class _Same(tuple[BaseTool, ...]):
    """Tools as a key of a cache: two keys are equal if they contain the same objects."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash((*map(id, self),))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and [*map(id, self)] == [*map(id, other)]


def searches_in(response: ModelResponse[Any]) -> list[str]:
    """Return the queries of the calls of `search_tools` in an answer."""
    return [_query_of(call) for call in _calls_in(response) if call["name"] == SEARCH]


def _calls_in(response: ModelResponse[Any]) -> list[AgentCall]:
    return [call for message in response.result if isinstance(message, AIMessage) for call in message.tool_calls]


def search_result(call: AgentCall, state: Any) -> str:
    """Return the result of a call of `search_tools`."""
    return str((state.get("found") or {}).get(_query_of(call)) or "This search was changed: search again.")


def _query_of(call: AgentCall) -> str:
    return str(call["args"].get("query") or "")


def unlisted_reason(name: str, state: Any) -> str:
    """Return why a call of a tool that the model was not shown does not run."""
    reason = f"{name} was not on your list of tools, so it did not run"
    return f"{reason}. It is on the list now: call it again if it fits" if name in shown_names(state) else reason


def definition_of(tool: BaseTool) -> dict[str, Any]:
    """Return the definition of a tool, as JSON."""
    return tool_definition(tool).model_dump(mode="json", by_alias=True, exclude_none=True)


def _added_spec(definition: Mapping[str, Any]) -> ToolSpec:
    """Return a tool that was not given to the middleware: its hints are not trusted."""
    from mcp_types import Tool  # slow to load

    return defined_tool_spec(SERVER, Tool.model_validate(definition), trusted=False)
