"""Play scripts on Packetgate's real graph, hub and database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.safety.dojo import Call, Dojo
from benchmarks.safety.dojo_variants import READS
from benchmarks.safety.playing import MOST_READS, MOST_TURNS, Person, Script
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Asked, Finished, Reply, Say, UserInput, run_turn
from packetgate.deciders.protocols import Answer, Deciders, IntentDecision, Review, SelectedCall, Selection
from packetgate.gate.confidence import CallReview
from packetgate.graph.building import build_graph
from packetgate.graph.journal import open_journal
from packetgate.graph.servers import make_hub
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.state.base import new_id
from packetgate.state.context import RoutingContext
from packetgate.state.errors import InputError
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Access
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.toolsets.servers.config import McpConfig, ServerConfig


@dataclass
class Player:
    """Decides all stages: plays the script, and approves every call."""

    suite: str
    script: Script = field(init=False)
    _pass: tuple[str, int] = ("", -1)
    _calls: tuple[SelectedCall, ...] = ()

    async def detect(self, packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
        """Read the outputs of the last pass, and need a tool until the script ends."""
        past = packet.tool_routing.all_calls if packet.tool_routing else ()
        self.script.read(call.result.output for call in past if call.result)
        return IntentDecision(
            needs_tool=not self.script.is_over, user_intent="", access=Access.MIXED, confidence=1.0, decided_by="model"
        )

    async def select(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
        """Return the next calls, or the same calls again in the same pass."""
        this_pass = (packet.header.packet_id, packet.routing.reinjection_count)
        if this_pass != self._pass:
            self._pass = this_pass
            self._calls = tuple(
                SelectedCall(tool_name=f"{self.suite}.{call.tool}", params=call.params)
                for call in self.script.next_pass()
            )
        return Selection(action="call", calls=self._calls, confidence=1.0, decided_by="model")

    async def review(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
        """Approve all calls."""
        judged = (CallReview(call_id=one.call_id, approved=True, confidence=1.0) for one in packet.routing.calls)
        return Review(reviews=tuple(judged), confidence=1.0, decided_by="model")

    async def respond(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Answer:
        """Return a fixed answer."""
        return Answer(text="Done.", confidence=1.0, decided_by="model")


@dataclass(frozen=True)
class Packetgate:
    """Sessions on a suite's server."""

    sessions: Sessions
    player: Player

    async def play(self, script: Script, person: Person) -> None:
        """Play a script in its own session, as connectors do."""
        self.player.script = script
        context = RoutingContext(
            allow_write_tools=person.policy.writes,
            allow_execute_tools=person.policy.writes,
            max_reinjections=10,
            max_parallel_calls=MOST_READS,
            palette_size=128,
            palette_token_budget=100_000,
        )
        session, turns = new_id(), 0
        turn: UserInput = Say(script.started.prompt)
        while turns < MOST_TURNS:
            async for event in run_turn(self.sessions, turn, session, context):
                last = event
            if isinstance(last, Asked):
                requests = last.question["action_requests"]
                reply = person.decisions(requests, f"{self.player.suite}.")
                turn = Reply(reply, last.question["question_id"])
                continue
            past = last.packet.tool_routing.all_calls if isinstance(last, Finished) and last.packet.tool_routing else ()
            for call in past:
                script.see(Call(call.tool_name.removeprefix(f"{self.player.suite}."), call.params))
            words = script.next_words()
            if words is None:
                return
            turn, turns = Say(words), turns + 1


@asynccontextmanager
async def packetgate(dojo: Dojo, folder: Path, deciders: Deciders | None = None) -> AsyncIterator[Packetgate]:
    """Open Packetgate on a suite's server, with all tools on every palette and the maximum turn length.

    Without `deciders`, scripts decide.

    Raises:
        InputError: the server does not start.
    """
    preferences = folder / "packetgate.toml"
    reads = "".join(f'tools."{dojo.suite}.{begin}*".risk = "read"\n' for begin in READS)  # no annotations
    preferences.write_text(f'permanent = ["*"]\n{reads}[policy]\nremember = "always"\n')
    settings = Settings(home=folder / "home", root=folder, config=preferences, usage_days=0)
    config = McpConfig((ServerConfig(dojo.suite, dojo.entry),), builtin="none")
    player = Player(dojo.suite)
    deciders = deciders or Deciders(player.detect, player.select, player.review, player.respond)
    async with (
        await make_hub(settings, config) as hub,
        open_checkpointer(settings) as checkpointer,
        open_store(settings) as store,
    ):
        if not await hub.catalogue():
            raise InputError("; ".join(f"{one.name}: {one.problem}" for one in hub.health()))
        graph = build_graph(deciders, hub, 0, open_journal(settings)).compile(checkpointer=checkpointer, store=store)
        yield Packetgate(Sessions(graph), player)
