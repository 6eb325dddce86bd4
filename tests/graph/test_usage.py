"""Calls in the journal that a person decided."""

from pathlib import Path

from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, scripted
from support.usage import entries_of

from packetgate.graph.journal import journal_at
from packetgate.graph.usage import answered_calls
from packetgate.state.sections import ApprovalOutcome

KIND = "model, rule"


async def test_only_decisions_of_a_person_teach_the_calibration(tmp_path: Path) -> None:
    journal = journal_at(tmp_path / "packetgate.db")
    first, *others = entries_of("p", None, *ApprovalOutcome, kind="reflex, rule")
    by_rule = [entry for entry in others if entry.event == "call_denied"]
    by_rule[0].detail["by"] = "rule 1"  # type: ignore[index]
    await journal.record(first, *others)
    assert await answered_calls(journal, 1) == [
        ("reflex, rule", 0.9, True),
        *[("reflex, rule", 0.9, False)] * 2,
    ]
    assert await answered_calls(journal, 0) == []
    await journal.forget("s")
    assert await answered_calls(journal, 1) == []


async def test_the_answers_of_one_session_can_be_selected(notebook: Notebook, tmp_path: Path) -> None:
    journal, writes = (
        journal_at(tmp_path / "packetgate.db"),
        [call("notebook.write_note", name="a", text=text) for text in "xy"],
    )
    async with session(
        scripted(*writes), notebook, journal=journal, allow_write_tools=True, max_reinjections=1
    ) as talk:
        for answer in ("no", "yes"):
            await talk.ask("Write it")
            await talk.reply(answer)
    assert await answered_calls(journal, 1) == [(KIND, 0.9, False), (KIND, 0.9, True)]
