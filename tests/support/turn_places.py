"""Run turns with a scripted model."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.clock_server import Clock
from support.prompts import call, review
from support.scripted_openai import ScriptedOpenAI

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Asked, Finished, TurnEvent, UserInput, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket


@dataclass(frozen=True)
class Place:
    """What turns run with."""

    settings: Settings
    model: ScriptedOpenAI
    clock: Clock
    root: Path

    @asynccontextmanager
    async def session(self, **context: Any) -> "AsyncIterator[Conversation]":
        """Open a conversation; `context` are fields of `RoutingContext`."""
        async with open_sessions(self.settings) as sessions:
            yield Conversation(sessions, "session", RoutingContext(**context))


@dataclass(frozen=True)
class Conversation:
    """A session, and turns on it."""

    sessions: Sessions
    name: str
    context: RoutingContext

    async def events(self, turn: UserInput) -> list[TurnEvent]:
        """Run a turn, and return its events."""
        async with aclosing(run_turn(self.sessions, turn, self.name, self.context)) as events:
            return [event async for event in events]

    async def answer(self, turn: UserInput) -> CognitionPacket:
        """Run a turn to its answer."""
        last = (await self.events(turn))[-1]
        assert isinstance(last, Finished), last
        return last.packet

    async def question(self, turn: UserInput) -> dict[str, Any]:
        """Run a turn to its question."""
        last = (await self.events(turn))[-1]
        assert isinstance(last, Asked), last
        return last.question


def wanting(tool: str, access: str = "read", **params: Any) -> tuple[str, ...]:
    """Return the model's answers up to a call."""
    return call(tool, **params), review(0.9)


def answering(text: str) -> tuple[str, ...]:
    """Return the model's answers after the last call."""
    return (text,)
