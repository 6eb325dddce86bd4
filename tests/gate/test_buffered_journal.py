"""A buffered journal records its entries with the next ones."""

from packetgate.gate.journal import BufferedJournal, Entry, MemoryJournal


async def events(journal: MemoryJournal) -> list[str]:
    return [row.entry.event for row in await journal.event_entries("a", "b", "c")]


async def test_buffered_entries_are_recorded_first_and_once() -> None:
    inner = MemoryJournal()
    journal = BufferedJournal(inner, Entry("a"))
    assert await events(inner) == []
    assert await journal.record(Entry("b"))
    assert await journal.record(Entry("c"))
    await journal.record()
    assert await events(inner) == ["a", "b", "c"]


async def test_entries_that_were_not_recorded_stay_buffered() -> None:
    inner = MemoryJournal()
    await inner.claim("taken")
    journal = BufferedJournal(inner, Entry("a"))
    assert not await journal.record(Entry("b", key="taken"))
    assert await events(inner) == []
    await journal.record()
    assert await events(inner) == ["a"]
