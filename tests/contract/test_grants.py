"""A remembered approval replaces later questions within its bounds: tool, arguments, definition, count and session."""

from pathlib import Path
from typing import Any

import pytest
from contract.doors import GATES, Door, Outcome, Setup, open_door
from contract.office import Office
from contract.rows import WRITES, mail, through

REMEMBERED = '[policy]\nremember = "always"\nremember_uses = 2\n'
MIA = "mia@example.org"


async def send(door: Door, to: str = MIA, answers: Any = (), thread: str = "one", words: str = "") -> Outcome:
    """Request a mail in a plain order that names its recipient."""
    return await door.turn([mail(to)], words=words or f"Send a mail to {to}", answers=answers, thread=thread)


@through(*GATES)
@pytest.mark.parametrize("word", ["session", "always"])
async def test_a_remembered_approval_replaces_the_next_question(word: str, door: str, tmp_path: Path) -> None:
    office = Office()
    async with open_door(door, office, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        first = await send(opened, answers=[word])
        again = await send(opened)
    assert (len(first.asked), again.asked, len(office.made)) == (1, [], 2)


@through(*GATES)
async def test_an_approval_for_a_session_ends_with_it(door: str, tmp_path: Path) -> None:
    office = Office()
    async with open_door(door, office, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        await send(opened, answers=["session"])
        assert (await send(opened, thread="two")).waits
    assert len(office.made) == 1


@through(*GATES)
async def test_a_permanent_approval_holds_in_other_sessions(door: str, tmp_path: Path) -> None:
    office = Office()
    async with open_door(door, office, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        await send(opened, answers=["always"])
        assert not (await send(opened, thread="two")).asked
    assert len(office.made) == 2


@through(*GATES)
async def test_an_approval_ends_with_its_count(door: str, tmp_path: Path) -> None:
    office = Office()
    async with open_door(door, office, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        await send(opened, answers=["always"])
        ends = [(await send(opened)).waits for _ in range(3)]
    assert ends == [False, False, True]
    assert len(office.made) == 3


@through(*GATES)
async def test_an_approval_covers_only_its_tool(door: str, tmp_path: Path) -> None:
    office = Office()
    async with open_door(door, office, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        await send(opened, answers=["always"])
        note = ("write_note", {"name": "a", "text": "avocado"})
        assert (await opened.turn([note], words="Write avocado to note a")).waits


@through(*GATES)
async def test_an_approval_covers_no_recipient_that_nobody_named(door: str, tmp_path: Path) -> None:
    office = Office()
    async with open_door(door, office, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        await send(opened, answers=["always"])
        assert (await send(opened, "eve@evil.example", words=f"Send a mail to {MIA}")).waits
    assert len(office.made) == 1


@through(*GATES)
async def test_a_grant_does_not_cover_free_text_and_cannot_be_given_for_it(door: str, tmp_path: Path) -> None:
    office = Office()
    async with open_door(door, office, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        await send(opened, answers=["always"])
        steps = [("read_mail", {})], [mail("eve@rival.example")]
        outcome = await opened.turn(*steps, words="Read my mail, and answer it")
    assert outcome.waits
    assert "remembers" not in outcome.question
    assert len(office.made) == 2


@through(*GATES)
@pytest.mark.parametrize("changes", [False, True], ids=["the same", "changed"])
async def test_an_approval_outlasts_a_restart_and_ends_with_the_definition(
    changes: bool, door: str, tmp_path: Path
) -> None:
    office, setup = Office(), Setup(tmp_path, WRITES, REMEMBERED, stored=True)
    async with open_door(door, office, setup) as opened:
        await send(opened, answers=["always"])
    if changes:
        office.change_mail()
    async with open_door(door, office, setup) as opened:
        assert (await send(opened)).waits is changes
    assert len(office.made) == 1 + (not changes)


@through(*GATES)
async def test_nothing_is_remembered_unless_the_configuration_allows_it(door: str, tmp_path: Path) -> None:
    office = Office()
    async with open_door(door, office, Setup(tmp_path, WRITES)) as opened:
        await send(opened, answers=["always", "approve"])
        again = await send(opened)
    assert again.waits
    assert "remembers" not in again.question
    assert len(office.made) <= 1


@through(*GATES)
async def test_a_remembered_refusal_replaces_the_next_question(door: str, tmp_path: Path) -> None:
    office = Office()
    async with open_door(door, office, Setup(tmp_path, WRITES, REMEMBERED)) as opened:
        await send(opened, answers=["never"])
        assert not (await send(opened)).asked
    assert office.made == []


@through(*GATES)
async def test_a_tool_that_looks_like_a_read_is_trusted_once(door: str, tmp_path: Path) -> None:
    office, forecast = Office(), ("get_forecast", {"city": "Bern"})
    async with open_door(door, office, Setup(tmp_path, {}, REMEMBERED)) as opened:
        first = await opened.turn([forecast], words="Get the forecast for Bern", answers=["trust"])
        again = await opened.turn([("get_forecast", {"city": "Ghent"})], words="Get the forecast for Ghent")
    assert (len(first.asked), again.asked) == (1, [])
    assert len(office.made) == 2
