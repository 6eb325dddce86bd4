"""Selection without a language model."""

from pathlib import Path
from typing import Any

import pytest
from support.packets import CONTEXT, FILES, done, packet

from packetgate.deciders.protocols import Selection
from packetgate.graph.servers import make_hub
from packetgate.graph.settings import Settings
from packetgate.reflex.plugin import select_by_reflex
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Approval, ApprovalOutcome
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.toolsets.servers.config import McpConfig

Calls = list[tuple[str, dict[str, Any]]]


async def select(given: CognitionPacket, catalogue: Catalogue = FILES, context: RoutingContext = CONTEXT) -> Selection:
    return await select_by_reflex(given, catalogue, context)


def made(selection: Selection) -> Calls:
    return [(call.tool_name, call.params) for call in selection.calls]


@pytest.mark.parametrize(
    ("request_", "calls"),
    [
        ("Read README.md", [("files.read_file", {"path": "README.md"})]),
        ("List src/", [("files.list_directory", {"path": "src/"})]),
        ("Write 'x' to a.txt", [("files.write_file", {"path": "a.txt", "content": "x"})]),
        ("Find the files that mention taxes", [("files.search_files", {"query": "taxes"})]),
        ("Delete a.txt", [("files.delete_file", {"path": "a.txt"})]),
        ("Run `ls -l`", [("shell.run_command", {"command": ["ls", "-l"]})]),
        ("Use files.delete_file on a.txt", [("files.delete_file", {"path": "a.txt"})]),
        ("Read a.txt and b.txt", [("files.read_file", {"path": "a.txt"}), ("files.read_file", {"path": "b.txt"})]),
        (
            "Read a.txt and list src/",
            [("files.read_file", {"path": "a.txt"}), ("files.list_directory", {"path": "src/"})],
        ),
        ("Read a.txt then read b.txt", [("files.read_file", {"path": "a.txt"})]),
    ],
)
async def test_the_call_has_arguments_from_the_request(request_: str, calls: Calls):
    selection = await select(packet(request_))
    assert (selection.action, made(selection)) == ("call", calls)
    assert selection.decided_by == "reflex"
    assert not selection.is_fallback


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ("What packages does pyproject.toml depend on?", "pyproject.toml"),
        ("Summarise a.txt and tell me who wrote it", "a.txt"),
        ("hello, show me /etc/hosts", "/etc/hosts"),
    ],
)
async def test_a_request_that_only_names_a_file_reads_it(request_: str, path: str, tmp_path: Path):
    for name in ("pyproject.toml", "a.txt"):
        (tmp_path / name).write_text("x")
    settings = Settings(home=tmp_path / "home", root=tmp_path)
    async with await make_hub(settings, McpConfig()) as hub:
        builtin = await hub.catalogue()
        assert made(await select(packet(request_, catalogue=builtin), builtin)) == [("ai.read", {"path": path})]


async def test_the_second_pass_does_the_second_step():
    selection = await select(packet("Read a.txt then delete b.txt", step=1))
    assert made(selection) == [("files.delete_file", {"path": "b.txt"})]


@pytest.mark.parametrize(("request_", "asks"), [("Write a.txt", "`content`"), ("Read the file", "`path`")])
async def test_a_missing_argument_leads_to_a_question(request_: str, asks: str):
    selection = await select(packet(request_))
    assert (selection.action, selection.calls) == ("clarify", ())
    assert asks in selection.question


@pytest.mark.parametrize(
    ("answers", "calls"),
    [
        (("hello world",), [("files.write_file", {"path": "a.txt", "content": "hello world"})]),
        (("'hello'",), [("files.write_file", {"path": "a.txt", "content": "hello"})]),
    ],
)
async def test_the_users_answer_fills_the_missing_argument(answers: tuple[str, ...], calls: Calls):
    assert made(await select(packet("Write a.txt", clarifications=answers))) == calls


async def test_the_users_correction_replaces_the_argument():
    given, waiting = packet("Delete a.txt", clarifications=("I meant b.txt",)), done("files.delete_file", path="a.txt")
    said = Approval(
        call_id=waiting.call_id,
        tool_name=waiting.tool_name,
        params=waiting.params,
        outcome=ApprovalOutcome.ANSWERED,
        comment="I meant b.txt",
    )
    given = given.with_update(
        {
            "governance": given.governance.changed(approvals=(said,)),
            "tool_routing": given.routing.changed(calls=(waiting,)),
        }
    )
    assert made(await select(given)) == [("files.delete_file", {"path": "b.txt"})]


async def test_a_tool_named_by_the_user_need_not_be_on_the_palette():
    """A tool that the request names is selected even outside the palette, which is then widened."""
    given = packet("Delete a.txt", catalogue=Catalogue([FILES["files.search_files"]]))
    assert made(await select(given)) == [("files.delete_file", {"path": "a.txt"})]


async def test_a_requested_change_selects_no_tool_for_another_action():
    """No tool renames files, and a tool that reads or deletes files is no replacement."""
    selection = await select(packet("Rename a.txt"))
    assert (selection.action, selection.calls) == ("none", ())
