"""The journal that holds entries back."""

from packetgate.tools.execution.journal import Entry, HeldJournal, MemoryJournal


async def events(journal: MemoryJournal) -> list[str]:
    return [row.entry.event for row in await journal.event_entries("a", "b", "c")]


async def test_held_entries_are_recorded_first_and_once() -> None:
    inner = MemoryJournal()
    held = HeldJournal(inner, Entry("a"))
    assert await events(inner) == []
    assert await held.record(Entry("b"))
    assert await held.record(Entry("c"))
    await held.flush()
    assert await events(inner) == ["a", "b", "c"]


async def test_entries_that_were_not_recorded_stay_held() -> None:
    inner = MemoryJournal()
    await inner.claim("taken")
    held = HeldJournal(inner, Entry("a"))
    assert not await held.record(Entry("b", key="taken"))
    assert await events(inner) == []
    await held.flush()
    assert await events(inner) == ["a"]
