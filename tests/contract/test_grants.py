"""A remembered approval replaces later questions within its bounds: tool, arguments, definition, count and session."""

from pathlib import Path
from typing import Any

import pytest
from contract.doors import GATES, Door, Outcome, Setup, open_door
from contract.office import Made, Office
from contract.rows import WRITES, mail, note, through

REMEMBERED = '[policy]\nremember = "always"\nremember_uses = 2\n'
MIA = "mia@example.org"


async def send(door: Door, to: str = MIA, answers: Any = (), thread: str = "one", words: str = "") -> Outcome:
    """Request a mail in a plain instruction that names the recipient."""
    return await door.turn([mail(to)], words=words or f"Send a mail to {to}", answers=answers, thread=thread)


LATER: list[tuple[str, str, Made, str, bool, int]] = [
    ("an approval for a session covers the same call", "session", mail(MIA), "one", False, 2),
    ("a permanent approval covers the same call", "always", mail(MIA), "one", False, 2),
    ("an approval for a session ends with it", "session", mail(MIA), "two", True, 1),
    ("a permanent approval holds in other sessions", "always", mail(MIA), "two", False, 2),
    ("an approval covers only its tool", "always", note(), "one", True, 1),
    ("an approval covers no recipient that nobody named", "always", mail("eve@evil.example"), "one", True, 1),
    ("a refusal replaces the next question", "never", mail(MIA), "one", False, 0),
]
"""The first answer, the later call and its session, whether this call needs approval, and how many calls run."""


@through(*GATES)
@pytest.mark.parametrize(
    ("word", "call", "thread", "asks", "runs"), [row[1:] for row in LATER], ids=[row[0] for row in LATER]
)
async def test_a_remembered_answer_holds_within_its_bounds(
    word: str, call: Made, thread: str, asks: bool, runs: int, door: str, tmp_path: Path
) -> None:
    async with open_door(door, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        first = await send(opened, answers=[word])
        words = "Write avocado to note a" if call == note() else f"Send a mail to {MIA}"
        later = await opened.turn([call], words=words, thread=thread)
    assert len(first.asked) == 1
    assert (bool(later.asked), later.waits, len(opened.office.made)) == (asks, asks, runs)


@through(*GATES)
async def test_an_approval_ends_with_its_count(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        await send(opened, answers=["always"])
        ends = [(await send(opened)).waits for _ in range(3)]
    assert ends == [False, False, True]
    assert len(opened.office.made) == 3


@through(*GATES)
async def test_a_grant_does_not_cover_free_text_and_cannot_be_given_for_it(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        await send(opened, answers=["always"])
        steps = [("read_mail", {})], [mail("eve@rival.example")]
        outcome = await opened.turn(*steps, words="Read my mail, and answer it")
    assert outcome.waits
    assert "remembers" not in outcome.question
    assert len(opened.office.made) == 2


@through(*GATES)
@pytest.mark.parametrize("changes", [False, True], ids=["the same", "changed"])
async def test_an_approval_outlasts_a_restart_and_ends_with_the_definition(
    changes: bool, door: str, tmp_path: Path
) -> None:
    office, setup = Office(), Setup(tmp_path, WRITES, REMEMBERED, stored=True)
    async with open_door(door, setup, office) as opened:
        await send(opened, answers=["always"])
    if changes:
        office.change_mail()
    async with open_door(door, setup, office) as opened:
        assert (await send(opened)).waits is changes
    assert len(office.made) == 1 + (not changes)


@through(*GATES)
async def test_nothing_is_remembered_unless_the_configuration_allows_it(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        await send(opened, answers=["always", "approve"])
        again = await send(opened)
    assert again.waits
    assert "remembers" not in again.question
    assert len(opened.office.made) <= 1


@through(*GATES)
async def test_a_tool_that_looks_like_a_read_is_trusted_once(door: str, tmp_path: Path) -> None:
    forecast = ("get_forecast", {"city": "Bern"})
    async with open_door(door, Setup(tmp_path, {}, REMEMBERED)) as opened:
        first = await opened.turn([forecast], words="Get the forecast for Bern", answers=["trust"])
        again = await opened.turn([("get_forecast", {"city": "Ghent"})], words="Get the forecast for Ghent")
    assert (len(first.asked), again.asked) == (1, [])
    assert len(opened.office.made) == 2
