"""An index is kept up to date without reading again what has not changed."""

from dataclasses import fields, replace
from typing import Any, ClassVar

from support.tool_specs import a_tool

from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.ranking.bm25 import Lexical
from packetgate.tools.spec.tool_spec import ToolSpec

NOTES = [
    a_tool("notes.search_notes", "Search all notes for a phrase."),
    a_tool("weather.get_forecast", "Get the weather forecast of a city."),
    a_tool("git.logShow", "Show recent commits.", author={"description": "Who committed."}),
    a_tool("time.convert", "Convert a time between zones."),
]


class Watched(ToolSpec):
    """A tool that notes when it is read for the index."""

    reads: ClassVar[list[str]] = []

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        self.reads.append(self.name)
        return ToolSpec.parameters.func(self)


def watched(*specs: ToolSpec) -> list[ToolSpec]:
    Watched.reads.clear()
    return [Watched(**{one.name: getattr(spec, one.name) for one in fields(spec)}) for spec in specs]


def test_an_update_reads_only_what_changed_and_ranks_as_an_index_made_anew():
    before, after = watched(*NOTES), watched(*NOTES[1:3], replace(NOTES[3], full="Tell the time."), a_tool("mail.send"))
    first = Lexical(before)
    old = first.rank("search a note, convert a time, send mail")
    Watched.reads.clear()
    second = Lexical(after, earlier=first)
    assert sorted(Watched.reads) == ["mail.send", "time.convert"]
    for request in ("search a note, convert a time, send mail", "tell", "zones", "notes", "mail"):
        assert second.rank(request) == Lexical(after).rank(request)
    assert first.rank("search a note, convert a time, send mail") == old
    assert "notes.search_notes" in {hit.name for hit in old}


def test_new_examples_are_read():
    asked = [replace(spec, examples=("what happened",) if spec.name == "git.logShow" else ()) for spec in NOTES]
    first = Lexical(asked)
    assert first.rank("happened")[0].name == "git.logShow"
    assert Lexical(NOTES, earlier=first).rank("happened") == []


def test_a_catalogue_takes_over_the_index_of_the_last_one_that_was_used():
    specs = watched(*NOTES)
    first = Catalogue(specs)
    assert first.ranking.rank("notes")
    Watched.reads.clear()
    unused = Catalogue(specs[1:], first)
    third = Catalogue([*specs, a_tool("mail.send")], unused)
    assert [hit.name for hit in third.ranking.rank("send mail forecast")] == ["mail.send", "weather.get_forecast"]
    assert Watched.reads == []
