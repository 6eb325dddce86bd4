"""The tools that are judged, and the tools that are excluded, for a request."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.packets import FILES, tool

from packetgate.reflex import fit
from packetgate.reflex.signals import load_signal_weights, serving_log_odds
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.opening import builtin_servers

NOW = datetime(2026, 1, 15, 9, tzinfo=UTC)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the tools that reach the judge."""
    names: list[str] = []

    def noting(request: str, specs: Sequence[ToolSpec]) -> list[float]:
        names.extend(spec.name for spec in specs)
        return [0.5] * len(specs)

    monkeypatch.setattr(fit, "judge", noting)
    return names


def test_a_tool_with_a_much_lower_score_is_not_judged(asked: list[str]):
    fits = fit.best_fits("files.read_file notes.txt", FILES, NOW)
    assert fits[0].spec.name == "files.read_file"
    assert asked == ["files.read_file"]
    assert [one.spec.name for one in fits] == ["files.read_file"]


def test_an_extra_tool_is_always_considered():
    fits = fit.best_fits("files.read_file notes.txt", FILES, NOW, also="clock.convert_time")
    assert [one.spec.name for one in fits] == ["files.read_file", "clock.convert_time"]
    assert fits[1].fillings


@pytest.mark.parametrize("text", ["What does recipe.md say?", "Who wrote plan.txt?", "which folder holds a.txt"])
def test_a_question_never_selects_a_changing_tool(text: str):
    fits = fit.best_fits(text, FILES, NOW)
    assert {one.spec.name for one in fits}.isdisjoint({"files.write_file", "files.delete_file"})
    wished = fit.best_fits(text, FILES, NOW, also="files.delete_file")
    assert "files.delete_file" in {one.spec.name for one in wished}


def test_the_judge_cannot_lift_a_tool_that_is_not_judged():
    weight = load_signal_weights().serving.judged
    seen = fit.ToolSignals()
    best, worst = (serving_log_odds(seen._replace(judged=odds)) for odds in (7.0, -7.0))
    assert best - worst == pytest.approx(14 * weight)
    assert best - worst < fit.MAX_JUDGED_GAP


@pytest.fixture
def folder(tmp_path: Path) -> Catalogue:
    """The built-in tools for a folder that contains a subfolder."""
    (tmp_path / "src" / "2024").mkdir(parents=True)
    (tmp_path / "src" / "util.py").touch()
    (tmp_path / "config.json").touch()
    servers = builtin_servers(tmp_path, None, None, None, ())
    for server in servers.values():
        asyncio.run(server.connect(0))
    return Catalogue(spec for server in servers.values() for spec in server.specs)


@pytest.mark.parametrize(
    ("text", "tool", "params"),
    [
        ("ls src", "ai.list", {"path": "src"}),
        ("List the files in src", "ai.list", {"path": "src"}),
        ("list src/2024", "ai.list", {"path": "src/2024"}),
        ("show me everything in this folder", "ai.list", {}),
        ("open the config", "ai.read", {"path": "config"}),
        ("Search for TODO in src", "ai.search", {"query": "TODO", "path": "src"}),
        ("please search the whole folder for 'password'", "ai.search", {"query": "password"}),
        ("locate util.py", "ai.find", {"name": "util.py"}),
        ("find all *.py files", "ai.find", {"name": "*.py"}),
        ("find *.py in src", "ai.find", {"name": "*.py", "path": "src"}),
    ],
)
def test_existing_files_show_which_words_are_paths(folder: Catalogue, text: str, tool: str, params: dict[str, str]):
    found = fit.best_fits(text, folder, NOW)[0]
    assert (found.spec.name, found.fillings[0].params) == (tool, params)


@pytest.mark.parametrize(
    "text", ['append "b" to notes.txt', 'add "b" to notes.txt', 'Please add "b" to the file notes.txt']
)
def test_a_request_to_append_never_overwrites(text: str):
    assert "files.write_file" not in {one.spec.name for one in fit.best_fits(text, FILES, NOW)}


@pytest.mark.parametrize("kind", ["string", ["string", "null"], ["null", "integer"], None])
def test_a_parameter_may_have_several_types_or_none(kind: str | list[str] | None):
    spec = tool("shop.search_orders", description="Search the orders.", query={"type": kind} if kind else {})
    (one,) = fit.best_fits("Search the orders for umbrellas", Catalogue([spec]), NOW)
    assert one.spec == spec


def test_the_name_of_a_server_is_no_value():
    spec = tool("vault.read_page", "page", page="string")
    for text, page in (("show kestrel from Vault", "kestrel"), ("show kestrel from vault/birds", "vault/birds")):
        (filling,) = fit.fill_arguments(spec, text, NOW)
        assert filling.params == {"page": page}
