"""Who has a claim to a palette: what ranks high whatever its kind, and of the others first what is asked for."""

from dataclasses import dataclass, replace

import pytest
from support.tool_specs import a_tool

from packetgate.state.routing import Risk
from packetgate.state.sections import Access
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.palette.candidates import Candidates, PaletteRequest, ranked_hits
from packetgate.tools.palette.subject import subject_of
from packetgate.tools.usage.learning import sharpened

SPECS = [
    a_tool("notes.search_notes", "Search all notes."),
    a_tool("notes.read_note", "Read a note."),
    a_tool("notes.write_note", "Write a note.", risk=Risk.WRITE),
    a_tool("notes.run_note", "Run the commands in a note.", risk=Risk.EXECUTE),
    a_tool("web.search", "Search the web for anything, notes too."),
    replace(a_tool("stars.list_planets", "List the planets seen tonight."), open_world=True),
    a_tool("mail.list_letters", "List letters."),
    a_tool("mail.send_letter", "Send a letter.", risk=Risk.WRITE),
]
OFFICE = Catalogue(SPECS)


def claims(words: str, access: Access = Access.READ, catalogue: Catalogue = OFFICE, **given: object) -> Candidates:
    wanted = replace(PaletteRequest(words=words, access=access, size=4, token_budget=2_000), **given)
    subject = subject_of(words)
    hits, taught = ranked_hits(wanted, catalogue, subject)
    return Candidates(wanted, catalogue, sharpened(hits, taught), subject)


def offered(words: str, access: Access = Access.READ, catalogue: Catalogue = OFFICE, **given: object) -> list[str]:
    return list(claims(words, access, catalogue, **given).reasons())


@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize(
    ("request_", "best"),
    [
        ("search my notes", "notes.search_notes"),
        ("send a letter", "mail.send_letter"),
        ("run a note", "notes.run_note"),
        ("list the planets", "stars.list_planets"),
    ],
)
def test_what_ranks_high_is_offered_whatever_access_was_guessed(request_: str, best: str, access: Access):
    assert offered(request_, access)[0] == best
    assert offered(request_, access) == offered(request_)


def test_every_tool_of_a_small_catalogue_is_offered_and_of_the_others_first_what_is_asked_for():
    for access, last in (
        (Access.READ, {"notes.write_note", "notes.run_note", "mail.send_letter"}),
        (Access.MIXED, set()),
    ):
        named = offered("xyzzy", access, size=8)
        assert set(named) == set(OFFICE)
        assert set(named[-5:]) >= last | {"web.search", "stars.list_planets"}


@dataclass(frozen=True)
class Case:
    request: str
    asked_for: set[str]
    access: Access = Access.READ


READ_ONLY = {"notes.search_notes", "notes.read_note", "mail.list_letters"}
OUTSIDE = {"web.search", "stars.list_planets"}


@pytest.mark.parametrize(
    "case",
    [
        Case("read my notes", READ_ONLY),
        Case("what is in the news", READ_ONLY | OUTSIDE),
        Case("look at http://example.com", READ_ONLY | OUTSIDE),
        Case("send a letter", READ_ONLY | {"notes.write_note", "mail.send_letter"}, Access.WRITE),
        Case("run a note", READ_ONLY | {"notes.run_note"}, Access.EXECUTE),
    ],
    ids=lambda case: case.request,
)
def test_what_a_request_asks_for(case: Case):
    assert {*claims(case.request, case.access).asked_for(OFFICE)} == case.asked_for


def test_what_nobody_else_can_do_is_told():
    assert claims("send a letter", catalogue=Catalogue(SPECS[-1:])).note() == (
        "nothing else fits this read request, so write tools are offered"
    )
    assert claims("list letters").note() == ""
    assert claims("list letters", context_type="seas").note() == "no tool is there for a conversation on 'seas'"


def test_a_pool_stands_behind_the_best_and_what_it_asks_for_stands_first():
    pools = Catalogue(SPECS, preferences=Preferences(pools={"work": ["mail.send_letter", "stars.*", "mail.*"]}))
    working = claims("search my notes", catalogue=pools, context_type="Work")
    assert working.pool == ["mail.list_letters", "mail.send_letter", "stars.list_planets"]
    reasons = working.reasons()
    assert [name for name, reason in reasons.items() if reason == "default"][:2] == working.pool[:2]
    assert next(iter(reasons)) == "notes.search_notes"


def test_where_nothing_would_do_what_had_no_room_comes_next():
    first = offered("search my notes")[:4]
    again = offered("search my notes", seen=first)
    left = len(OFFICE.ranking.rank("search my notes")) - 4
    assert again[0] == first[0]
    assert left > 0
    assert not {*again[1 : 1 + left]} & {*first}
    assert set(again) == set(OFFICE)


def test_a_request_that_says_nothing_goes_on_with_the_sessions_subject():
    assert offered("and that?", subject=["letters"])[0] == "mail.list_letters"
    assert offered("read a note", subject=["letters"])[0] == "notes.read_note"
