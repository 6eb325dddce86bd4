"""The tools on a palette: their selection, order, detail and reasons."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from support.tool_specs import PATH, a_tool, files_catalogue

from packetgate.ranking.choice import PaletteRequest, choose_palette, recent_after, tool_text
from packetgate.ranking.learning import MAX_ADDED_TOOLS, ConfirmedUse, LearnedUses
from packetgate.ranking.subject import subject_of
from packetgate.state.base import now
from packetgate.state.routing import Risk
from packetgate.state.sections import Access, PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.text.tokens import ESTIMATE, TokenCounter

READS = [f"notes.read_note_{i:02}" for i in range(30)]
SPECS = [*(a_tool(name, "Read a note. " * 5, path=PATH) for name in READS), *files_catalogue().values()]
MANY = Catalogue(SPECS)
ALWAYS = Preferences(permanent=READS[5:7])
CHOSEN_BEFORE = ["gone.tool"]  # a session that began with a choice never shows the whole catalogue


def wanted(words: str = "read a note", access: Access = Access.READ, **given: Any) -> PaletteRequest:
    return PaletteRequest(words=words, access=access, **{"size": 8, "token_budget": 2_000, **given})


def chosen_by(request: PaletteRequest, catalogue: Catalogue = MANY) -> tuple[PaletteEntry, ...]:
    return choose_palette(request, catalogue).entries


def names(entries: Iterable[PaletteEntry]) -> list[str]:
    return [entry.tool_name for entry in entries]


def cost(entries: tuple[PaletteEntry, ...], catalogue: Catalogue, tokens: TokenCounter = ESTIMATE) -> int:
    return sum(tokens.count(tool_text(catalogue[one.tool_name], one.detail)) for one in entries)


@pytest.mark.parametrize("size", [1, 2, 8, 20])
def test_a_palette_has_at_most_size_tools_without_repeats(size: int):
    chosen = names(chosen_by(wanted(size=size, recent=READS[3:9]), Catalogue(SPECS, preferences=ALWAYS)))
    assert len(chosen) == len(set(chosen)) == size


@pytest.mark.parametrize("budget", [100, 150, 300, 2_000])
def test_a_palette_is_within_the_budget(budget: int):
    chosen = chosen_by(wanted(token_budget=budget, size=128))
    assert 0 < cost(chosen, MANY) <= budget


@pytest.mark.reflex
@pytest.mark.parametrize("words", ["read a note", "zephyr"])
@pytest.mark.parametrize(("size", "budget"), [(8, 2_000), (128, 300), (128, 20_000)])
def test_learned_uses_remove_no_tool(words: str, size: int, budget: int):
    uses = [ConfirmedUse(tool=one, asked=words, context_type="general", session_id="s", at=now()) for one in READS[20:]]
    plain = wanted(words, size=size, token_budget=budget)
    for learned in (LearnedUses(uses[:1]), LearnedUses(uses)):
        with_uses = names(chosen_by(replace(plain, learned=learned)))
        assert {*names(chosen_by(plain))} <= {*with_uses}
        assert {*with_uses} & {use.tool for use in uses}
        assert len(with_uses) == len({*with_uses}) <= size + MAX_ADDED_TOOLS


def test_a_tool_beyond_the_budget_is_shown_in_brief():
    huge = Catalogue([a_tool("notes.read_huge", "Read. " + "\n\nArgs: " + "x" * 50_000)])
    (only,) = chosen_by(wanted("read huge", token_budget=100), huge)
    assert only.detail == "brief"
    (only,) = chosen_by(wanted("read huge", token_budget=100, described=["notes.read_huge"]), huge)
    assert (only.detail, only.reason) == ("full", "described")


def test_a_palette_is_never_empty_if_there_are_tools():
    for access in Access:
        for catalogue in (MANY, files_catalogue(), Catalogue([a_tool("a.run", "word " * 99, risk=Risk.EXECUTE)])):
            assert chosen_by(wanted("xyzzy", access, token_budget=1, size=1), catalogue)
    assert chosen_by(wanted(recent=["gone.tool"], described=["gone.tool"]), Catalogue()) == ()


def chosen_with(preferences: dict[str, Any], request: str = "xyzzy", **given: Any) -> dict[str, str]:
    """Return the reason for each tool of the palette."""
    mail = a_tool("mail.send_letter", "Send a letter.")
    catalogue = Catalogue([*SPECS, mail], preferences=Preferences.model_validate(preferences))
    return {one.tool_name: one.reason for one in chosen_by(wanted(request, **given), catalogue)}


@pytest.mark.parametrize(("kind", "most"), [("general", 5), ("task", 8), ("tasks", 8)])
def test_the_number_of_recent_tools_is_a_setting_by_kind(kind: str, most: int):
    preferences = {"recent_tools": 5, "contexts": {"Tasks": {"recent_tools": 8}}}
    chosen = chosen_with(preferences, recent=READS[:9], size=20, context_type=kind)
    assert [name for name, reason in chosen.items() if reason == "recent"] == READS[:most]
    assert [*chosen_with({}, recent=READS[:9], size=20).values()].count("recent") == 6


def test_permanent_tools_depend_on_kind_of_conversation_and_user():
    preferences = {
        "permanent": ["files.read_file"],
        "contexts": {"code": {"permanent": ["shell.*"]}},
        "users": {"ann": {"permanent": ["mail.*"]}},
    }
    always, code, mail = {"files.read_file"}, {"shell.run_command"}, {"mail.send_letter"}
    for kind, person, expected in (
        ("general", "", always),
        ("code", "bob", always | code),
        ("general", "ann", always | mail),
        ("code", "ann", always | code | mail),
    ):
        chosen = chosen_with(preferences, context_type=kind, person=person)
        assert {name for name, reason in chosen.items() if reason == "permanent"} == expected


def test_tools_of_a_task_are_on_the_palette_of_its_requests():
    preferences = {"tasks": {"release": {"patterns": ["cut * release"], "tools": ["shell.*"]}}}
    assert "shell.run_command" in chosen_with(preferences, "Read a note and cut the release", size=4)
    assert "shell.run_command" not in chosen_with(preferences, "Read a note", size=4)


def test_a_category_of_the_user_applies_to_tools_and_requests():
    preferences = Preferences.model_validate({"categories": {"Bees": ["hive", "honey"]}})
    farm = [a_tool("farm.count_hive", "Count what is in one."), a_tool("farm.feed", "Feed the dog.")]
    catalogue = Catalogue([*SPECS, *farm], preferences=preferences)
    assert [catalogue[one.name].category for one in farm] == ["bees", ""]
    assert catalogue.pool("bee") == ("farm.count_hive",)
    assert subject_of("Is there honey?", preferences.category_words).categories == {"bees"}


OFFICE = Catalogue(
    [
        a_tool("notes.search_notes", "Search all notes."),
        a_tool("notes.write_note", "Write a note.", risk=Risk.WRITE),
        a_tool("web.search", "Search the web for anything, notes too."),
        replace(a_tool("stars.list_planets", "List the planets seen tonight."), open_world=True),
        a_tool("mail.list_letters", "List letters."),
        a_tool("mail.send_letter", "Send a letter.", risk=Risk.WRITE),
    ],
    preferences=Preferences(pools={"work": ["mail.send_letter", "stars.*", "mail.*"]}),
)


@pytest.mark.parametrize(
    ("request_", "best"),
    [
        ("search my notes", "notes.search_notes"),
        ("send a letter", "mail.send_letter"),
        ("list the planets", "stars.list_planets"),
    ],
)
def test_the_best_ranked_tool_comes_first_with_any_detected_access(request_: str, best: str):
    for access in Access:
        assert chosen_by(wanted(request_, access, size=4), OFFICE)[0].tool_name == best


@pytest.mark.parametrize(
    ("request_", "access", "last"),
    [
        ("xyzzy", Access.READ, {"notes.write_note", "mail.send_letter", "web.search", "stars.list_planets"}),
        ("xyzzy on https://example.com", Access.READ, {"notes.write_note", "mail.send_letter"}),
        ("xyzzy", Access.MIXED, {"web.search", "stars.list_planets"}),
    ],
)
def test_unranked_tools_with_more_access_or_reach_come_last(request_: str, access: Access, last: set[str]):
    assert {*names(chosen_by(wanted(request_, access, offered=CHOSEN_BEFORE), OFFICE))[-len(last) :]} == last


def test_the_pool_comes_after_the_best_with_reads_first():
    chosen = chosen_by(wanted("search my notes", size=6, context_type="Work", offered=CHOSEN_BEFORE), OFFICE)
    assert names(chosen)[0] == "notes.search_notes"
    assert names(one for one in chosen if one.reason == "default")[:2] == ["mail.list_letters", "mail.send_letter"]
    assert (
        choose_palette(wanted(context_type="seas", size=5), OFFICE).note
        == "no tool belongs to conversations of type 'seas'"
    )


def test_entries_are_ordered_by_reason():
    request = wanted(
        described=["files.write_file"],
        missed=["runCommand", "nothing.like_it"],
        recent=["gone.tool", "mail.send_letter"],
        context_type="editing",
        size=9,
    )
    others = [a_tool(name, "", path=PATH) for name in ("clock.tell_time", "mail.send_letter", "maps.find_route")]
    pools = {"editing": ["maps.*"]}
    catalogue = Catalogue([*SPECS, *others], preferences=Preferences(permanent=["clock.*"], pools=pools))
    chosen = chosen_by(request, catalogue)
    assert [(one.tool_name, one.reason) for one in chosen[:4]] == [
        ("files.write_file", "described"),
        ("shell.run_command", "widened"),
        ("clock.tell_time", "permanent"),
        ("mail.send_letter", "recent"),
    ]
    assert [one.reason for one in chosen[4:]] == ["ranked"] * 4 + ["default"]
    assert {one.detail for one in chosen[:4]} == {"full"}
    assert chosen[-1].tool_name == "maps.find_route"


def test_a_missed_tool_is_on_the_next_palette():
    request = wanted("read a note", size=4)
    before = names(chosen_by(request))
    assert "shell.run_command" not in before
    after = chosen_by(replace(request, missed=["run_command"], seen=before))
    assert (after[0].tool_name, after[0].reason, after[0].detail) == ("shell.run_command", "widened", "full")
    assert {*before[:3]} <= {*names(after)}


def test_if_nothing_fits_the_next_palette_has_the_tools_without_room():
    request = wanted("read a note", size=4)
    before = choose_palette(request, MANY)
    after = choose_palette(replace(request, seen=names(before.entries)), MANY)
    assert before.left_out == 4
    assert {*names(after.entries)} & {*names(before.entries)} == {before.entries[0].tool_name}


def test_a_note_states_that_only_tools_of_another_risk_fit():
    chosen = choose_palette(wanted("run a command", size=2), files_catalogue())
    assert names(chosen.entries)[0] == "shell.run_command"
    assert chosen.note == "nothing else fits this read request, so execute tools are offered"
    assert choose_palette(wanted("read a file", size=2), files_catalogue()).note == ""


def test_after_a_result_only_tools_related_to_the_users_words_are_added():
    wishes = {"described": ["files.write_file"], "missed": ["shell.run_command"]}
    assert {"files.write_file", "shell.run_command"} <= set(names(chosen_by(wanted(**wishes))))
    assert not {"files.write_file", "shell.run_command"} & set(names(chosen_by(wanted(**wishes, guarded=True))))
    spoken = wanted("read a note and run a command", **wishes, guarded=True)
    assert "shell.run_command" in names(chosen_by(spoken))


def test_a_request_without_a_subject_uses_the_sessions_subject():
    assert names(chosen_by(wanted("and that?", size=4, subject=["command"], access=Access.MIXED)))[0] == (
        "shell.run_command"
    )


def test_the_budget_is_counted_with_the_given_tokenizer():
    letters = TokenCounter(len, is_exact=True)
    chosen = choose_palette(wanted(token_budget=900, tokens=letters, size=30), MANY)
    assert chosen.tokens == cost(chosen.entries, MANY, letters) <= 900
    assert len(chosen.entries) < len(chosen_by(wanted(token_budget=900, size=30)))


def test_a_catalogue_that_fits_is_shown_whole_in_order_of_name():
    total = sum(ESTIMATE.count(tool_text(spec, "full")) for spec in SPECS)
    fitting = choose_palette(wanted("xyzzy", size=len(MANY), token_budget=total), MANY)
    assert [(one.tool_name, one.detail, one.reason) for one in fitting.entries] == [
        (name, "full", "whole") for name in sorted(MANY)
    ]
    some, all_ = [*MANY][:3], [*MANY]
    assert {one.reason for one in chosen_by(wanted("xyzzy", size=128, token_budget=total, offered=all_))} == {"whole"}
    for less in ({"size": len(MANY) - 1}, {"token_budget": total - 1}, {"offered": some}):
        entries = chosen_by(wanted("xyzzy", **{"size": len(MANY), "token_budget": total, **less}))
        assert "whole" not in {one.reason for one in entries}


def test_previously_offered_tools_are_shown_in_full():
    offered = ["notes.read_note_29", "gone.tool", "shell.run_command"]
    chosen = choose_palette(wanted(offered=offered), MANY)
    kept = {one.tool_name: (one.detail, one.reason) for one in chosen.entries[-2:]}
    assert kept == {name: ("full", "offered") for name in offered if name in MANY}
    assert chosen.tokens == cost(chosen.entries, MANY)
    named = next(one.tool_name for one in choose_palette(wanted(), MANY).entries if one.detail != "full")
    assert {one.tool_name: one.detail for one in chosen_by(wanted(offered=[named]))}[named] == "full"


def test_better_ranked_tools_are_shown_in_more_detail():
    chosen = chosen_by(wanted(token_budget=100_000, size=20))
    assert [one.detail for one in chosen] == ["full"] * 5 + ["brief"] * 7 + ["name"] * 8
    assert all(one.score > 0 for one in chosen)


@pytest.mark.reflex
def test_tools_with_much_lower_scores_are_shown_in_less_detail():
    others = [a_tool(f"office.{verb}_task", f"{verb.capitalize()} a task.") for verb in ("list", "close", "find")]
    catalogue = Catalogue([*SPECS, *others])
    chosen = chosen_by(wanted("run the command", size=20, token_budget=100_000), catalogue)
    best = max(one.score for one in chosen)
    assert [one.detail for one in chosen[:5]] == ["full"] * 2 + ["brief"] * 2 + ["name"]
    assert all(one.score < 0.15 * best for one in chosen[1:])


def test_the_order_of_the_catalogue_does_not_matter():
    assert chosen_by(wanted(), Catalogue(SPECS[::-1])) == chosen_by(wanted())


def long_permanent(count: int, words: int) -> Catalogue:
    """Return permanent tools with briefs of `words` words and longer texts, and three tools that are not permanent."""
    text = f"{'word ' * words}. \n\nArgs:\n{'more ' * 300}"
    always = [a_tool(f"always.keep_{at}", text) for at in range(count)]
    files = files_catalogue().values()
    return Catalogue([*always, *files], preferences=Preferences(permanent=["always.*"]))


@pytest.mark.parametrize("request_", ["Read the file", "use files.read_file", "run readFile", "files.read_file"])
def test_permanent_tools_fall_back_to_brief(request_: str):
    catalogue = long_permanent(10, 90)
    chosen = choose_palette(wanted(request_, size=24), catalogue)
    permanent = [one for one in chosen.entries if one.reason == "permanent"]
    assert names(tuple(permanent)) == list(catalogue.permanent)
    assert permanent[-1].detail == "brief"
    assert "files.read_file" in names(chosen.entries)
    assert chosen.note == ""
    assert chosen.tokens <= 2_000


@pytest.mark.parametrize(("count", "size", "budget"), [(30, 20, 2_000), (10, 4, 2_000), (40, 60, 100)])
def test_a_note_names_permanent_tools_without_room(count: int, size: int, budget: int):
    catalogue = long_permanent(count, 90)
    for access in Access:
        chosen = choose_palette(
            wanted("use files.read_file and runCommand", access, size=size, token_budget=budget), catalogue
        )
        assert {"shell.run_command", "files.read_file"} <= set(names(chosen.entries))
        left = [name for name in catalogue.permanent if name not in names(chosen.entries)]
        assert chosen.note == f"there was no room for {', '.join(left[:4])} and {len(left) - 4} more"
        assert chosen.tokens <= budget
        assert len(chosen.entries) <= size


def test_recent_tools_are_newest_first_without_repeats():
    assert recent_after(("a", "b", "c"), ["c"]) == ("c", "a", "b")
    assert recent_after((), ["a", "a"]) == ("a",)
    assert recent_after(tuple("abcdefgh"), ["i", "c"]) == ("i", "c", "a", "b", "d", "e", "f", "g")
    assert recent_after(tuple("abc"), []) == ("a", "b", "c")
