"""Who is offered for a request: by access, by what reaches outside, and by all of its parts."""

from dataclasses import dataclass, replace

import pytest
from support.tool_specs import a_tool

from state.routing import Risk
from state.sections import Access
from tools.catalogue.catalogue import Catalogue
from tools.catalogue.preferences import Preferences
from tools.palette.candidates import Candidates, PaletteRequest
from tools.palette.subject import subject_of

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
    wanted = replace(PaletteRequest(words=words, access=access, size=8, token_budget=2_000), **given)
    return Candidates(wanted, catalogue, subject_of(words), catalogue.ranking.rank(words))


def offered(words: str, access: Access = Access.READ, catalogue: Catalogue = OFFICE, **given: object) -> set[str]:
    return set(claims(words, access, catalogue, **given).reasons())


@dataclass(frozen=True)
class Case:
    request: str
    holds: set[str]
    lacks: set[str]
    access: Access = Access.READ


CASES = [
    Case("search my notes", {"notes.search_notes", "notes.read_note"}, {"web.search", "stars.list_planets"}),
    Case("search the web for notes", {"web.search"}, {"stars.list_planets"}),
    Case("search for notes on http://example.com", {"web.search", "notes.search_notes"}, {"notes.write_note"}),
    Case("list the planets", {"stars.list_planets"}, {"web.search"}),
    Case("read my notes", {"notes.read_note"}, {"notes.write_note", "notes.run_note"}),
    Case("write a note", {"notes.write_note", "notes.read_note"}, {"notes.run_note", "web.search"}, Access.WRITE),
    Case("run a note", {"notes.run_note", "notes.read_note"}, {"notes.write_note"}, Access.EXECUTE),
    Case("list letters and read a note", {"mail.list_letters", "notes.read_note"}, {"mail.send_letter"}),
    Case(
        "read the notes and send a letter",
        {"notes.read_note", "mail.send_letter", "mail.list_letters", "notes.search_notes"},
        {"web.search", "notes.run_note"},
        Access.WRITE,
    ),
    Case("what now", {"notes.read_note", "mail.list_letters"}, {"web.search", "stars.list_planets", "notes.run_note"}),
    Case("news of anything", {"web.search", "stars.list_planets"}, {"mail.send_letter"}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.request)
def test_who_is_offered(case: Case):
    names = offered(case.request, case.access)
    assert case.holds <= names
    assert not case.lacks & names


def test_what_nobody_else_can_do_is_offered_and_that_is_told():
    sending = claims("send a letter", catalogue=Catalogue(SPECS[-1:]))
    assert sending.reasons() == {"mail.send_letter": "ranked"}
    assert sending.note == "nothing else fits this read request, so write tools are offered"
    assert claims("list letters").note == ""


def test_what_reaches_outside_stands_where_the_user_put_it():
    always = Catalogue(SPECS, preferences=Preferences(permanent=["web.search"], pools={"work": ["stars.*", "mail.*"]}))
    assert "web.search" in offered("search my notes", catalogue=always)
    pool = offered("what now", catalogue=always, context_type="work")
    assert "mail.list_letters" in pool
    assert "stars.list_planets" not in pool


def test_a_miss_opens_what_was_left_out():
    assert offered("search my notes", widened=True) == set(OFFICE)
    assert "web.search" in offered("search my notes", missed=("search",), recent=("web.search",))


def test_what_was_left_out_is_counted():
    searching = claims("search my notes")
    hits = {hit.name for hit in OFFICE.ranking.rank("search my notes")}
    assert searching.left_out == len(hits) - len(searching.ranked) == 3
    assert hits - set(searching.ranked) == {"web.search", "notes.write_note", "notes.run_note"}


def test_a_pool_is_narrowed_by_a_clear_request_unless_it_is_the_pools_own_subject():
    pools = Catalogue(SPECS, preferences=Preferences(pools={"letter": ["notes.read_note", "mail.list_letters"]}))
    assert claims("search my notes", catalogue=pools, context_type="letter").pool == ["notes.read_note"]
    for words in ("list letters", "what now"):
        assert claims(words, catalogue=pools, context_type="Letter").pool == ["notes.read_note", "mail.list_letters"]
