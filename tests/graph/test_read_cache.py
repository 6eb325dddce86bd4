"""What was read a moment ago is used again for the same read of the same person, and never where it might be stale."""

from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastmcp.exceptions import ToolError
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from mcp_types import ImageContent, ToolListChangedNotification
from support.graphs import Session
from support.pictures import png
from support.scripted_deciders import ScriptedSelector, call, none, scripted
from support.tide_server import Tide
from support.vouching import worded

from packetgate.connectors.turn import Asked, Finished, Reply, Say
from packetgate.graph.building import build_graph
from packetgate.graph.journal.opening import journal_in
from packetgate.graph.serializer import PacketSerializer
from packetgate.graph.settings import Settings
from packetgate.state.base import now
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.request import TurnRequest
from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.execution import call_log
from packetgate.tools.execution.call_log import ENDED, STARTED
from packetgate.tools.execution.journal import Journal, MemoryJournal
from packetgate.tools.execution.running import execute
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.servers.server import Server
from packetgate.tools.usage.learning import ConfirmedUse, confirmed_uses
from packetgate.tools.usage.record import by_tool
from packetgate.tools.usage.store import read_usage

MINUTE = {"ttlMs": 60_000}
READ = {"tool_name": "tide.read_level", "place": "Brest"}
ANN = TurnRequest(origin="discord", person="ann")


@dataclass
class Clock:
    """The time by which results grow old."""

    ahead_s: float = 0.0

    def now(self) -> datetime:
        return now() + timedelta(seconds=self.ahead_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(call_log, "now", made.now)
    return made


@dataclass
class Talk:
    """A graph over servers, on which anybody may speak in any session."""

    graph: Any
    hub: McpHub
    journal: Journal
    store: InMemoryStore
    selector: ScriptedSelector
    context: RoutingContext
    packets: list[CognitionPacket] = field(default_factory=list)

    async def do(
        self, wanted: dict[str, Any], words: str = "Do it", by: TurnRequest = ANN, session: str = "s", **context: Any
    ) -> ToolCall:
        """Have one call made in a turn of its own, approved if that is asked, and return it as it ended."""
        self.selector.selections += [call(**wanted), none()]
        talk = Session(self.graph, self.context.model_copy(update=context), session)
        last = (await talk.events(Say(words, by)))[-1]
        if isinstance(last, Asked):
            last = (await talk.events(Reply("yes")))[-1]
        assert isinstance(last, Finished)
        self.selector.selections.clear()
        self.packets.append(last.packet)
        return last.packet.routing.all_calls[-1]

    async def read(self, *words: str, **how: Any) -> ToolCall:
        """Have the level read."""
        return await self.do(READ, *words, **how)

    async def write(self, level: str = "high", **how: Any) -> ToolCall:
        """Have the level set."""
        return await self.do({"tool_name": "tide.set_level", "level": level}, allow_write_tools=True, **how)


@asynccontextmanager
async def talk_over(
    *servers: Server, journal: Journal | None = None, tools: dict[str, Any] | None = None, **policy: Any
) -> AsyncIterator[Talk]:
    journal, store = journal or MemoryJournal(), InMemoryStore()
    preferences = worded(Preferences.model_validate({"tools": tools or {}, "policy": policy}))
    async with McpHub(servers, preferences=preferences) as hub:
        deciders = scripted()
        saver = InMemorySaver(serde=PacketSerializer())
        graph = build_graph(deciders, hub, journal=journal).compile(checkpointer=saver, store=store)
        assert isinstance(deciders.selector, ScriptedSelector)
        yield Talk(graph, hub, journal, store, deciders.selector, RoutingContext())


@dataclass(frozen=True)
class Lifetime:
    id: str
    hint: dict[str, Any] | None = None
    said: dict[str, Any] | None = None
    user: int | None = None
    holds_s: float = 0
    """For how long; 0: never."""


LIFETIMES = [
    Lifetime("nobody says anything"),
    Lifetime("the tool says so", hint=MINUTE, holds_s=60),
    Lifetime("the user says so", user=90, holds_s=90),
    Lifetime("the user says less than the tool", hint=MINUTE, user=20, holds_s=20),
    Lifetime("the user says more than the tool", hint=MINUTE, user=90, holds_s=60),
    Lifetime("the user says never", hint=MINUTE, user=0),
    Lifetime("the tool says never", hint={"ttlMs": 0}, user=90),
    Lifetime("the tool says less than nothing", hint={"ttlMs": -1}, user=90),
    Lifetime("the tool is believed for an hour", hint={"ttlMs": 1e300}, holds_s=3600),
    Lifetime("the tool says what is no number", hint={"ttlMs": "60000"}),
    Lifetime("the tool says yes", hint={"ttlMs": True}, user=90),
    Lifetime("the result says less than the tool", hint=MINUTE, said={"ttlMs": 5_000}, holds_s=5),
    Lifetime("the result says more than the tool", hint=MINUTE, said={"ttlMs": 90_000}, holds_s=60),
    Lifetime("the result says never", hint=MINUTE, said={"ttlMs": 0}),
    Lifetime("the result says no-cache", hint=MINUTE, said={"cache_hint": "no-cache"}),
    Lifetime("the result alone says so", said=MINUTE),
]


@pytest.mark.parametrize("case", LIFETIMES, ids=lambda case: case.id)
async def test_how_long_a_result_holds(clock: Clock, case: Lifetime):
    tide = Tide(case.hint, case.said)
    user = {} if case.user is None else {"tide.*": {"cache_seconds": case.user}}
    async with talk_over(tide.connection(), tools=user) as talk:
        first = await talk.read()
        clock.ahead_s = max(case.holds_s - 1, 0)
        again = await talk.read()
        assert tide.reads == (1 if case.holds_s else 2)
        assert again.is_cached == (case.holds_s > 0)
        assert not first.is_cached
        clock.ahead_s = case.holds_s + 1
        assert not (await talk.read()).is_cached


async def test_what_is_used_again_grows_no_younger_by_it(clock: Clock):
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        for clock.ahead_s in (0, 40, 59):
            await talk.read()
        assert tide.reads == 1
        clock.ahead_s = 70
        assert not (await talk.read()).is_cached


async def test_a_clock_that_was_set_back_makes_nothing_fresh(clock: Clock):
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        clock.ahead_s = -3_600
        assert not (await talk.read()).is_cached


OTHERS = {
    "in another session": {"session": "t"},
    "by another person": {"by": ANN.through("discord", "ben")},
    "by nobody known": {"by": TurnRequest(origin="discord")},
    "through another channel": {"by": ANN.through("terminal")},
    "who wants it fresh": {"fresh": True},
    "who says again": {"words": "How high is it now? Look again."},
}


@pytest.mark.parametrize("other", OTHERS)
async def test_nothing_is_used_for(other: str):
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        assert not (await talk.read(**OTHERS[other])).is_cached
        assert tide.reads == 2


async def test_what_was_read_afresh_is_what_is_used_from_then_on():
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        await talk.read("Once again")
        third = await talk.read()
        assert third.is_cached
        assert third.result is not None
        assert third.result.output == "Brest: low, read number 2"


async def test_other_arguments_are_another_read():
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        assert not (await talk.do(READ | {"place": "brest"})).is_cached


@pytest.mark.parametrize("session", ["s", "t"])
async def test_a_write_forgets_what_was_read(session: str):
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        assert (await talk.write(session=session)).status is ToolExecutionStatus.EXECUTED
        after = await talk.read()
        assert not after.is_cached
        assert after.result is not None
        assert "high" in after.result.output
        assert (await talk.read()).is_cached


async def test_a_write_that_failed_forgets_too():
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        assert (await talk.write("stormy")).status is ToolExecutionStatus.FAILED
        assert not (await talk.read()).is_cached


async def test_a_write_of_which_nobody_knows_forgets_too():
    tide = Tide(MINUTE)
    async with talk_over(tide.connection(timeout_s=1.0)) as talk:
        await talk.read()
        assert (await talk.write("endless")).status is ToolExecutionStatus.UNKNOWN
        assert not (await talk.read()).is_cached


async def test_a_dry_run_changes_nothing_and_forgets_nothing():
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        dry = await talk.do({"tool_name": "tide.set_level", "level": "high"})
        assert dry.status is ToolExecutionStatus.SKIPPED
        assert (await talk.read()).is_cached


async def test_what_was_read_while_a_write_ran_is_not_used_after_it():
    """It began before the read and ended after it, in another process: the read may have seen what was before."""
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.write()
        (started,) = [row.entry for row in await talk.journal.of_events(STARTED) if row.entry.key]
        (ended,) = [row.entry for row in await talk.journal.of_events(ENDED) if row.entry.key]
        await talk.journal.record(replace(started, key="run:elsewhere"))
        await talk.read()
        assert (await talk.read()).is_cached
        await talk.journal.record(replace(ended, key="end:elsewhere"))
        assert not (await talk.read()).is_cached


def changed(tide: Tide) -> None:
    async def read_level(place: str) -> str:
        """Read the level of the tide at a place, in feet."""
        tide.reads += 1
        return f"{place}: 12 ft"

    tide.server.local_provider.remove_tool("read_level")
    tide.server.tool(read_level, meta=MINUTE)


@pytest.mark.parametrize("change", [changed, lambda tide: None], ids=["another definition", "the same"])
async def test_a_server_whose_tools_changed_has_what_it_said_forgotten(change: Callable[[Tide], None]):
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        change(tide)
        connection: Any = talk.hub._connections["tide"]
        await connection._on_message(ToolListChangedNotification())
        assert not (await talk.read()).is_cached
        assert tide.reads == 2


async def test_nothing_is_used_of_a_server_that_has_not_listed_its_changes():
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        connection: Any = talk.hub._connections["tide"]

        async def unheard() -> None:
            """The server does not come to listing them."""

        connection.refresh = unheard
        await connection._on_message(ToolListChangedNotification())
        for _ in range(2):
            assert not (await talk.read()).is_cached


async def test_another_process_uses_nothing_of_this_one(tmp_path: Path):
    """Its servers are started anew, maybe elsewhere."""
    tide, journal = Tide(MINUTE), journal_in(Settings(home=tmp_path))
    for _ in range(2):
        async with talk_over(tide.connection(), journal=journal) as talk:
            await talk.read()
            assert (await talk.read()).is_cached
    assert tide.reads == 2


async def test_a_session_that_is_forgotten_has_no_cache(tmp_path: Path):
    tide, journal = Tide(MINUTE), journal_in(Settings(home=tmp_path))
    async with talk_over(tide.connection(), journal=journal) as talk:
        await talk.read()
        await journal.forget("s")
        assert not (await talk.read()).is_cached


ANSWERS = {
    "an error": ToolError("the gauge is stuck"),
    "what is too long to be shown whole": "x" * 150_000,
    "a picture": [ImageContent(data=b64encode(png()).decode(), mime_type="image/png")],
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_what_is_never_used_again(answer: str):
    tide = Tide(MINUTE)
    tide.answer = ANSWERS[answer]
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        assert not (await talk.read()).is_cached


async def test_what_the_user_is_asked_about_is_run():
    tide, rules = Tide(MINUTE), [{"effect": "ask", "tool": "tide.read_level"}]
    async with talk_over(tide.connection(), rules=rules) as talk:
        for _ in range(2):
            assert not (await talk.read()).is_cached
        assert tide.reads == 2


async def test_the_gate_comes_before_the_cache():
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        packet = talk.packets[0]
        narrowed = packet.governance.model_copy(update={"settings": RoutingContext(allowed_tools=("tide.set_level",))})
        wanted = ToolCall(**_of(READ), status=ToolExecutionStatus.APPROVED)
        refused = await execute(
            wanted, packet.merged({"governance": narrowed}), await talk.hub.catalogue(), talk.hub, talk.journal
        )
        assert refused.status is ToolExecutionStatus.FAILED
        assert refused.result is not None
        assert "allowed_tools" in str(refused.result.error)


def taught(packet: CognitionPacket) -> list[ConfirmedUse]:
    """Return what a turn would teach if the ranking had not known it."""
    unranked = packet.context.model_copy(update={"palette": ()})
    return [*confirmed_uses(packet.merged({"context": unranked}))]


async def test_it_is_seen_and_counts_as_no_run(clock: Clock):
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read("Read the level at Brest")
        clock.ahead_s = 42
        made = await talk.read("Read the level at Brest")
        packet, told = talk.packets[-1], "from the cache, as read 42 s ago"
        assert made.result is not None
        assert (made.result.age, made.result.output) == (told, "Brest: low, read number 1")
        assert f'[tide.read_level: {told}; say "again" in a request to have it read anew]' in packet.response.candidate
        assert f"tide.read_level: executed {told}" in [entry.summary for entry in packet.reasoning.reflection_log]
        audit = [(entry.event, entry.detail) for entry in packet.governance.audit if entry.call_id == made.call_id]
        assert ("call_cached", f"tide.read_level {told}") in audit
        (field_,) = packet.content.data_fields
        assert isinstance(field_.value, dict)
        assert field_.value["age"] == told
        assert told in packet._repr_html_()
        rows = [row.entry.event for row in await talk.journal.of_call(packet.header.packet_id, made.call_id)]
        assert STARTED not in rows
        assert {ENDED, "call_cached"} <= {*rows}
        assert CognitionPacket.model_validate_json(packet.model_dump_json()) == packet
        (usage,) = by_tool((await read_usage(talk.store)).records)
        assert (usage.asked, usage.executed, usage.cached) == (2, 1, 1)
        assert [len(taught(one)) for one in talk.packets] == [1, 0]


async def test_a_replay_ends_as_it_did_though_the_result_no_longer_holds(clock: Clock):
    tide = Tide(MINUTE)
    async with talk_over(tide.connection()) as talk:
        await talk.read()
        made = await talk.read()
        clock.ahead_s = 3_600
        again = made.model_copy(update={"status": ToolExecutionStatus.APPROVED, "result": None})
        ended = await execute(again, talk.packets[-1], await talk.hub.catalogue(), talk.hub, talk.journal)
        assert (ended.result, tide.reads) == (made.result, 1)


def _of(wanted: dict[str, Any]) -> dict[str, Any]:
    params = {name: value for name, value in wanted.items() if name != "tool_name"}
    return {"tool_name": wanted["tool_name"], "params": params}
