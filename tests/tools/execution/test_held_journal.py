"""What is held is written before what follows it, once, and in one piece with it."""

from packetgate.tools.execution.journal import Entry, HeldJournal, MemoryJournal


async def events(journal: MemoryJournal) -> list[str]:
    return [row.entry.event for row in await journal.of_events("a", "b", "c")]


async def test_what_is_held_comes_first_and_once() -> None:
    inner = MemoryJournal()
    held = HeldJournal(inner, Entry("a"))
    assert await events(inner) == []
    assert await held.record(Entry("b"))
    assert await held.record(Entry("c"))
    await held.flush()
    assert await events(inner) == ["a", "b", "c"]


async def test_what_could_not_be_written_is_held_on() -> None:
    inner = MemoryJournal()
    await inner.claim("taken")
    held = HeldJournal(inner, Entry("a"))
    assert not await held.record(Entry("b", key="taken"))
    assert await events(inner) == []
    await held.flush()
    assert await events(inner) == ["a"]
