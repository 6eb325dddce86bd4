"""What a write would change, as the user sees it before they decide."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.notebook import Notebook

from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Governance
from packetgate.tools.approval import preview
from packetgate.tools.catalogue.preferences import Preferences, ToolPreference
from packetgate.tools.execution.journal import MemoryJournal
from packetgate.tools.servers.config import McpConfig
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.servers.opening import open_hub

OLD = "one\ntwo\nthree\n"
SAME = "[the text stays the same]"


@dataclass(frozen=True)
class Case:
    id: str
    params: dict[str, Any]
    shows: tuple[str, ...]
    """Lines of the preview, in order; none: there is no preview."""
    file: bytes | None = OLD.encode()
    """What `a.txt` holds before."""


def overwriting(content: str, **more: Any) -> dict[str, Any]:
    return {"path": "a.txt", "content": content, "mode": "overwrite", **more}


BUILT_IN = [
    Case("changed", overwriting("one\n2\nthree\n"), ("--- a.txt now", "+++ a.txt", " one", "-two", "+2", " three")),
    Case("new", {"path": "b.txt", "content": "hello\n"}, ("--- /dev/null", "+++ b.txt", "+hello")),
    Case("new by overwriting", {**overwriting("hello\n"), "path": "b/c.txt"}, ("--- /dev/null", "+++ b/c.txt")),
    Case("appended", overwriting("four\n", mode="append"), (" three", "+four")),
    Case("without a last newline", overwriting("one"), ("-three", "+one", "\\ No newline at end of file")),
    Case("the same", overwriting(OLD), (SAME,)),
    Case("once empty", overwriting("hello\n"), ("--- /dev/null", "+hello"), file=b""),
    Case("control characters", overwriting("\x1b[2J\u202ebad\r\n"), ("+␛[2J<U+202E>bad␍",)),
    Case("many lines", overwriting("x\n"), ("-0",) * 3_000 + ("+x",), file=b"0\n" * 3_000),
    Case("a long line", overwriting("x" * 5_000 + "; curl evil"), ("+" + "x" * 5_000 + "; curl evil",)),
    Case(
        "other ends of lines", overwriting("one\ntwo\nthree\n"), ("-one␍", "+one", " two"), file=b"one\r\ntwo\nthree\n"
    ),
    Case("there already, though new is asked for", {"path": "a.txt", "content": "x"}, ()),
    Case("binary", overwriting("x"), (), file=b"\0\1"),
    Case("outside", {**overwriting("x"), "path": "../secret.txt"}, ()),
    Case("a folder", {**overwriting("x"), "path": "."}, ()),
    Case("too long to read", overwriting("x"), (), file=b"x" * 150_000),
    Case("too long to compare", overwriting("x\n" * 6_000), ()),
]


@pytest.mark.parametrize("case", BUILT_IN, ids=lambda case: case.id)
async def test_the_built_in_write(case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("outside\n")
    if case.file is not None:
        (folder / "a.txt").write_bytes(case.file)
    async with await open_hub(McpConfig(), folder, tmp_path, None, patience_s=30) as hub:
        (shown,) = await shown_of(hub, ToolCall(tool_name="ai.write", params=case.params))
    in_order(shown, case.shows)
    assert [file.name for file in folder.iterdir()] == ["a.txt"]
    assert (folder / "a.txt").read_bytes() == case.file


def in_order(shown: str, lines: tuple[str, ...]) -> None:
    """Assert that a preview has these lines, in this order; that there is none, where there are no lines."""
    rest = iter(shown.split("\n") if shown else [])
    missing = [line for line in lines if line not in rest]
    assert not missing, f"{missing} not in order in {shown!r}"
    assert bool(shown) == bool(lines), shown


@dataclass(frozen=True)
class Told:
    id: str
    reader: str | None
    shows: tuple[str, ...]
    called: list[str] = field(default_factory=list)
    tool: str = "notebook.write_note"
    params: dict[str, Any] = field(default_factory=lambda: {"name": "a", "text": "pears"})


READ = ["read_note"]
CONFIGURED = [
    Told("replaced by default", "notebook.read_note", ("--- a now", "+++ a", "-apples", "+pears"), READ),
    Told(
        "appended",
        "notebook.read_note",
        ("+apples, pears",),
        READ,
        params={"name": "a", "text": ", pears", "mode": "append"},
    ),
    Told("nobody says how", None, ()),
    Told("no such reader", "notebook.read", ()),
    Told("a reader that writes", "notebook.save_note", ()),
    Told("a reader that runs commands", "notebook.run_command", ()),
    Told("a reader of another server", "other.read_note", ()),
    Told("a reader with nothing in common", "notebook.list_notes", ()),
    Told("a reader that needs more", "notebook.check_weather", ()),
    Told("a reader that fails", "notebook.read_note", (), READ, params={"name": "nowhere", "text": "pears"}),
    Told("a reader that never answers", "notebook.fetch_slowly", (), ["fetch_slowly"]),
    Told("content that is no text", "notebook.read_note", (), params={"name": "a", "text": ["pears"]}),
    Told("no content", "notebook.read_note", (), params={"name": "a"}),
    Told("more than content", "notebook.read_note", (), params={"name": "a", "text": "b", "colour": "red"}),
    Told("an unknown mode", "notebook.read_note", (), params={"name": "a", "text": "b", "mode": "twist"}),
    Told("an odd mode", "notebook.read_note", (), params={"name": "a", "text": "b", "mode": {"x": 1}}),
]


@pytest.mark.parametrize("case", CONFIGURED, ids=lambda case: case.id)
async def test_a_write_of_another_server(case: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "PATIENCE_S", 0.5 if case.called == ["fetch_slowly"] else 60)
    notebook = Notebook()
    async with hub_of(notebook, reader=case.reader) as hub:
        call = ToolCall(tool_name=case.tool, params=case.params)
        (shown,) = await shown_of(hub, call)
    in_order(shown, case.shows)
    assert notebook.called == case.called


async def test_each_call_has_its_own_and_a_slow_one_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preview, "PATIENCE_S", 1.0)
    said = {
        "notebook.write_note": ToolPreference(preview="notebook.read_note"),
        "notebook.save_note": ToolPreference(preview="notebook.fetch_slowly"),
    }
    calls = [ToolCall(tool_name=name, params={"name": "a", "text": "pears"}) for name in reversed(said)]
    async with McpHub([Notebook().connection()], preferences=Preferences(tools=said)) as hub:
        slow, quick = await shown_of(hub, *calls)
    assert slow == ""
    in_order(quick, ("-apples", "+pears"))


async def test_what_may_not_be_used_here_is_not_read_either() -> None:
    notebook = Notebook()
    call = ToolCall(tool_name="notebook.write_note", params={"name": "a", "text": "pears"})
    async with hub_of(notebook, reader="notebook.read_note") as hub:
        only_writing = RoutingContext(allowed_tools=("notebook.write_*",))
        assert await shown_of(hub, call, settings=only_writing) == ("",)
    assert notebook.called == []


async def test_the_reads_are_on_the_palette_and_in_the_trail() -> None:
    """Also one that fails, and one for which nothing waits any more."""
    notebook = Notebook()
    calls = [ToolCall(tool_name="notebook.write_note", params={"name": name, "text": "x"}) for name in ("a", "nowhere")]
    async with hub_of(notebook, reader="notebook.read_note") as hub:
        packet, _ = await preview.previews(calls, CognitionPacket(), await hub.catalogue(), hub, MemoryJournal())
    (entry,) = packet.context.palette
    assert (entry.tool_name, entry.reason) == ("notebook.read_note", "preview")
    assert [(one.event, one.detail, one.call_id) for one in packet.governance.audit] == [
        ("preview_executed", 'notebook.read_note {"name":"a"}', calls[0].call_id),
        ("preview_failed", 'notebook.read_note {"name":"nowhere"}', calls[1].call_id),
    ]


async def shown_of(hub: McpHub, *calls: ToolCall, settings: RoutingContext | None = None) -> tuple[str, ...]:
    """Return the previews of calls."""
    packet = CognitionPacket(governance=Governance(settings=settings or RoutingContext()))
    _, shown = await preview.previews(calls, packet, await hub.catalogue(), hub, MemoryJournal())
    return shown


@asynccontextmanager
async def hub_of(notebook: Notebook, reader: str | None) -> AsyncIterator[McpHub]:
    """Open a notebook and another one, with a reader configured for the notebook's `write_note`."""
    preferences = Preferences(tools={"notebook.write_note": ToolPreference(preview=reader)})
    connections = [notebook.connection(), Notebook("other").connection()]
    async with McpHub(connections, preferences=preferences) as hub:
        yield hub
