"""Where past turns are kept."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from connectors.sessions import Sessions

PAGE = 50
"""Checkpoints read at once: some five turns."""


@dataclass(frozen=True)
class Archive:
    """Conversations, and the record of their turns."""

    sessions: Sessions
    store: BaseStore

    async def history(self, session: str) -> AsyncIterator[StateSnapshot]:
        """Yield the states of a conversation, the newest first."""
        config, before = self.sessions.config(session), None
        while True:
            states = [one async for one in self.sessions.graph.aget_state_history(config, before=before, limit=PAGE)]
            for state in states:
                yield state
            if len(states) < PAGE:
                return
            before = states[-1].config
