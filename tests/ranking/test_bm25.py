from dataclasses import replace
from typing import Any

import pytest
from support.tool_specs import a_tool

from packetgate.ranking import bm25
from packetgate.ranking.bm25 import Lexical
from packetgate.ranking.ranking import ranking_of
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.words import query_terms

NOTES = [
    a_tool("notes.search_notes", "Search all notes for a phrase."),
    a_tool("notes.create_note", "Create a note."),
    a_tool("weather.get_forecast", "Get the weather forecast of a city."),
    a_tool("git.logShow", "Show recent commits.", author={"description": "Who committed."}),
    a_tool("time.convert", "Convert a time between zones."),
]

STAPLE = {"properties": {"staple_count": {"type": "integer"}}}


def best(request: str) -> str | None:
    hits = Lexical(NOTES).rank(request)
    return hits[0].name if hits else None


@pytest.mark.parametrize(
    ("request_", "tool"),
    [
        ("searching my notes for kettles", "notes.search_notes"),
        ("creates a noted note", "notes.create_note"),
        ("what are the forecasts", "weather.get_forecast"),
        ("show the log", "git.logShow"),
        ("LOGSHOW", "git.logShow"),
        ("log-show", "git.logShow"),
        ("use logShow", "git.logShow"),
        ("call get_forecast", "weather.get_forecast"),
        ("who committed it", "git.logShow"),
        ("converting zones", "time.convert"),
        ("hello there, how are you", None),
        ("", None),
    ],
)
def test_any_form_of_a_word_finds_tools(request_: str, tool: str | None):
    assert best(request_) == tool


def test_a_name_weighs_more_than_a_description():
    catalogue = Catalogue([a_tool("a.send_mail", "Post it."), a_tool("b.post_letter", "Send a mail, mail, mail.")])
    assert [hit.name for hit in ranking_of(catalogue).rank("mail")] == ["a.send_mail", "b.post_letter"]


def test_hits_have_the_common_words():
    (hit, *_) = Lexical(NOTES).rank("create phrases in notes")
    assert hit.score > 0
    assert hit.terms <= {"create", "phrases", "notes"}
    by_name = {hit.name: hit for hit in Lexical(NOTES).rank("create phrases in notes")}
    assert by_name["notes.search_notes"].terms == {"phrases", "notes"}
    assert by_name["notes.search_notes"].name_terms == {"notes"}


def test_ties_are_in_order_of_name():
    catalogue = Catalogue([a_tool(f"s{i}.ping", "Ping.") for i in (3, 1, 2)])
    assert [hit.name for hit in ranking_of(catalogue).rank("ping")] == ["s1.ping", "s2.ping", "s3.ping"]


@pytest.mark.parametrize(
    "text",
    [
        '"', "'", 'notes" OR "x', "name:notes", "note*",
        "(", "🚪📄", "note\x00s", "\ud800", "²", "ﬁle", "İ", "漢字", "\\", "_", "note " * 20_000, "漢字" * 50_000,
    ],
    ids=lambda text: ascii(text[:12]),
)  # fmt: skip
def test_unusual_requests_are_ranked(text: str):
    hits = Lexical(NOTES).rank(text)
    assert {hit.name for hit in hits} <= {spec.name for spec in NOTES}
    assert Lexical(NOTES).rank("notes")


def test_query_terms_have_no_stop_words_and_repeats():
    assert query_terms("Please read the readFile of my_notes, READ it!") == ["read", "readfile", "file", "notes"]


@pytest.mark.parametrize(
    ("request_", "tool"),
    [
        ("请帮我搜索一下网页", "web.find"),
        ("quelle est la meteo", "ciel.prevoir"),
        ("MÉTÉO", "ciel.prevoir"),
        ("покажи погоду", "sky.show"),
        ("a landscape please", "print.page"),
        ("staple it", "print.page"),
        ("who sang that", "music.lookup"),
    ],
)
def test_other_languages_schemas_and_examples_are_indexed(request_: str, tool: str):
    paper = {"properties": {"layout": {"enum": ["portrait", "landscape"]}, "finish": {"items": {"anyOf": [STAPLE]}}}}
    catalogue = [
        a_tool("web.find", "使用必应搜索网页"),
        a_tool("ciel.prevoir", "La météo de demain."),
        a_tool("sky.show", "погоду"),
        a_tool("print.page", "Print.", options=paper),
        replace(a_tool("music.lookup", "Identify a song."), examples=("who sang this?",)),
    ]
    hits = Lexical(catalogue).rank(request_)
    assert [hit.name for hit in hits] == [tool]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": []},
        {"properties": {"a": None, "b": {"enum": 5, "description": ["x"], "items": [1, {"anyOf": "no"}]}}},
        {"$defs": 7, "properties": {"a": {"$ref": "#/properties/a"}}, "required": "a"},
        {"properties": {"a": {"enum": [None, {}, 3]}}},
    ],
)
def test_unusual_schemas_are_indexed(schema: dict[str, Any]):
    assert Lexical([a_tool("a.odd", schema=schema)]).rank("odd")[0].name == "a.odd"


def test_a_deep_schema_is_read_to_a_depth():
    schema: dict[str, Any] = {"description": "bottomless"}
    for _ in range(5000):
        schema = {"items": schema}
    catalogue = Lexical([a_tool("a.deep", parameter=schema)])
    assert catalogue.rank("bottomless") == []
    assert catalogue.rank("deep")[0].name == "a.deep"


def test_a_complete_name_ranks_above_a_part_of_a_name():
    tools = [a_tool(f"{name}.{name}", "Same.") for name in ("get_zone_report", "get_zone", "get_zone_report_draft")]
    assert Lexical(tools).rank("get the zone")[0].name == "get_zone.get_zone"
    assert Lexical(tools).rank("get the zone report")[0].name == "get_zone_report.get_zone_report"


def test_rare_words_are_scored_first(monkeypatch: pytest.MonkeyPatch):
    tools = Lexical([a_tool(f"s.t{i}", f"Common{' rare' * (i == 7)}{' single' * (i == 9)}.") for i in range(20)])
    assert len(tools.rank("common rare single")) == 20
    monkeypatch.setattr(bm25, "MAX_MATCHES", 15)
    assert {hit.name for hit in tools.rank("common rare single")} == {"s.t7", "s.t9"}
    assert len(tools.rank("common")) == 20
