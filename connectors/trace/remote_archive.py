"""Where a LangGraph-API server keeps past turns."""

from collections.abc import AsyncIterator
from contextlib import suppress

from langgraph.types import StateSnapshot
from langgraph_sdk.errors import NotFoundError

from connectors.trace.archive import Archive


class RemoteArchive(Archive):
    """A server's conversations. One that it knows nothing of is as good as empty."""

    async def history(self, session: str) -> AsyncIterator[StateSnapshot]:
        """Yield the states of a conversation, the newest first."""
        with suppress(NotFoundError):
            async for state in super().history(session):
                yield state
