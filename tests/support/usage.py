"""Past turns as the journal records them."""

import asyncio
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier

from packetgate.gate.journal import Entry
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.graph.usage import PastCall
from packetgate.ranking.learning import ConfirmedUse
from packetgate.ranking.store import store_use
from packetgate.state.base import now
from packetgate.state.sections import Header


def entries_of(
    packet_id: str, *calls: PastCall, session: str = "s", origin: str = "terminal", asked: str = "Go on"
) -> Iterator[Entry]:
    """Yield the journal's entries of a turn."""
    yield Entry("turn_opened", session, packet_id, detail={"channel": origin, "person": "", "request": asked})
    for number, call in enumerate(calls):
        names = (session, packet_id, f"c{number}")
        yield Entry("call_proposed", *names, {"tool_name": call.tool, "params": {}, "risk": "read"})
        if call.review_score is not None:
            review = {"score": call.review_confidence, "stated": call.review_score, "kind": call.review_kind}
            yield Entry("call_reviewed", *names, {**review, "status": "awaiting_approval"})
        if call.approval:
            yield Entry(f"call_{call.approval}", *names, {"params": {}, "by": "", "question_id": "q"})
        elif call.status.value not in {"pending", "user_denied"}:
            yield Entry(f"call_{call.status}", *names, {"detail": call.tool})


def record_many(settings: Settings, session: str, count: int, together: Barrier) -> None:
    """Open the database at the same time as other processes, and record turns one after the other."""
    together.wait()
    asyncio.run(_record_many(settings, session, count))


async def _record_many(settings: Settings, session: str, count: int) -> None:
    journal = open_journal(settings)
    async with open_checkpointer(settings), open_store(settings) as store:
        for number in range(count):
            await journal.record(*entries_of(f"{session}-{number}", PastCall("ai.read"), session=session))
            use = ConfirmedUse(tool="ai.read", asked="Go on", context_type="general", session_id=session, at=now())
            await store_use(store, Header(session_id=session), f"{session}-{number}", use)
