"""Past turns in the form that the journal records."""

import asyncio
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier

from packetgate.gate.journal import Entry
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.ranking.learning import ConfirmedUse
from packetgate.ranking.store import store_use
from packetgate.state.base import now
from packetgate.state.sections import ApprovalOutcome, Header


def entries_of(
    packet_id: str, *outcomes: ApprovalOutcome | None, kind: str = "", score: float = 0.9, session: str = "s"
) -> Iterator[Entry]:
    """Yield the journal's entries of a turn, with a reviewed call for each decision of the user."""
    yield Entry("turn_opened", session, packet_id, detail={"channel": "terminal", "person": "", "request": "Go on"})
    for number, outcome in enumerate(outcomes):
        names = (session, packet_id, f"c{number}")
        yield Entry("call_proposed", *names, {"tool_name": "ai.write", "params": {}, "risk": "write"})
        review = {"score": score, "stated": score, "kind": kind, "status": "awaiting_approval"}
        yield Entry("call_reviewed", *names, review)
        if outcome:
            yield Entry(f"call_{outcome}", *names, {"params": {}, "by": "", "question_id": "q"})


def record_many(settings: Settings, session: str, count: int, together: Barrier) -> None:
    """Open the database at the same time as other processes, and record turns one after the other."""
    together.wait()
    asyncio.run(_record_many(settings, session, count))


async def _record_many(settings: Settings, session: str, count: int) -> None:
    journal = open_journal(settings)
    async with open_checkpointer(settings), open_store(settings) as store:
        for number in range(count):
            await journal.record(*entries_of(f"{session}-{number}", session=session))
            use = ConfirmedUse(tool="ai.read", asked="Go on", context_type="general", session_id=session, at=now())
            await store_use(store, Header(session_id=session), f"{session}-{number}", use)
