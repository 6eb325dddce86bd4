"""The events of a turn in LangGraph's custom stream."""

from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Command
from support.graphs import Session

from packetgate.state.events import StageFinished, StageStarted, StageStopped
from packetgate.state.packet import TurnInput


async def events_of(talk: Session, said: str | Command[Any], events: list[Any] | None = None) -> list[Any]:
    """Run a turn, or go on with one, up to its answer or question; return its events, and add them to `events`."""
    events = [] if events is None else events
    given = TurnInput(messages=[HumanMessage(said)]) if isinstance(said, str) else said
    stream = talk.graph.astream(given, talk.config, context=talk.context, stream_mode="custom")
    async for event in stream:
        events.append(event)
    return events


def started(events: list[Any]) -> list[StageStarted]:
    """Return the stages that began."""
    return [event for event in events if isinstance(event, StageStarted)]


def finished(events: list[Any], stage: str = "") -> list[StageFinished]:
    """Return the stages that ended, or one stage's."""
    return [event for event in events if isinstance(event, StageFinished) and stage in {"", event.stage}]


def stopped(events: list[Any]) -> list[StageStopped]:
    """Return the stages that waited for the user or broke."""
    return [event for event in events if isinstance(event, StageStopped)]
