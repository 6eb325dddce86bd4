"""The answer without a language model: results unchanged, and the reasons for calls that did not run."""

import pytest
from support.packets import CONTEXT, FILES, asking, done, packet, with_error, with_output

from packetgate.deciders.fallback import MAX_RESULT_CHARS
from packetgate.reflex.answer import respond_by_reflex
from packetgate.state.channels import BY_COMMAND, SwitchHints
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.state.sections import ServerHealth
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue

S = ToolExecutionStatus


async def answer(given: CognitionPacket, catalogue: Catalogue = FILES) -> str:
    return (await respond_by_reflex(given, catalogue, CONTEXT)).text


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (with_output(done("files.read_file", path="a.txt"), "apples\n"), "files.read_file (path=a.txt):\napples"),
        (with_output(done("files.read_file", path="a.txt"), "  "), "files.read_file (path=a.txt):\n(nothing)"),
        (
            with_error(done("files.read_file", S.FAILED, path="a.txt"), "no such file"),
            "files.read_file (path=a.txt) failed: no such file",
        ),
        (done("files.delete_file", S.USER_DENIED, path="a"), "files.delete_file (path=a) was not run: you denied it."),
        (
            done("files.read_file", S.SKIPPED, path="a", why="0.20 is below 0.70"),
            "files.read_file (path=a) was skipped: 0.20 is below 0.70",
        ),
        (
            with_error(done("files.delete_file", S.UNKNOWN, path="a"), "server 'files' went away"),
            "was started, and it is not known whether it finished: server 'files' went away",
        ),
        (
            with_output(done("files.delete_file", S.SKIPPED, path="a"), "would delete a", dry_run=True),
            "Nothing was done: write tools are switched off; `allow_write_tools` in the settings switches them on.",
        ),
        (
            with_output(done("files.delete_file", S.SKIPPED, path="a"), "would delete a", dry_run=True),
            "Dry run of files.delete_file:\nwould delete a",
        ),
        (done("files.read_file", S.AWAITING_APPROVAL, path="a"), "was not run (status: awaiting approval)"),
    ],
)
async def test_each_outcome_is_stated(call: ToolCall, says: str):
    assert says in await answer(packet("Do it to a", call))


async def test_the_answer_has_calls_then_the_note_then_suggestions():
    given = packet(
        "Do it",
        with_output(done("files.read_file", path="b"), "bread"),
        past_calls=(with_output(done("files.read_file", path="a"), "apples"),),
        note="the rest was skipped",
        suggestions=("files.list_directory",),
    )
    text = await answer(given)
    places = [text.index(part) for part in ("apples", "bread", "The rest was skipped.", "Nearest tools: files.list")]
    assert places == sorted(places)


async def test_a_long_output_is_excerpted_by_the_request():
    filler = "\n\n".join(f"Paragraph {n} speaks of other things altogether, at some length." for n in range(400))
    text = await answer(
        packet("What does a.txt say about penguins?", with_output(done("files.read_file", path="a.txt"), long(filler)))
    )
    assert "Penguins live in the south." in text
    assert f"{len(long(filler)):,} characters in all" in text
    assert len(text) < MAX_RESULT_CHARS + 300


def long(filler: str) -> str:
    return f"{filler}\n\nPenguins live in the south.\n\n{filler}"


async def test_unavailable_servers_and_tools_are_named():
    servers = (
        ServerHealth(name="mail", state="failed", problem="it burned down"),
        ServerHealth(name="ok", state="ready"),
        ServerHealth(name="slow", state="connecting"),
        ServerHealth(name="odd", state="ready", tools=3, problem="not offered: 'x': nothing fits its schema"),
    )
    text = await answer(packet("Read a", done("files.read_file", S.FAILED, path="a"), servers=servers))
    assert text.endswith(
        "Some servers are not available: mail: it burned down; slow: still starting.\n\n"
        "Some tools are not available: odd: not offered: 'x': nothing fits its schema."
    )


@pytest.mark.parametrize(
    ("request_", "parts"),
    [
        ("thanks", ("You're welcome.",)),
        ("bye", ("Goodbye.",)),
        ("y", ("No question is open",)),
        ("ok", ("What is next?",)),
        ("Hello", ("Hello!", "files.read_file")),
        ("help", ("- files.read_file: Read a text file",)),
        ("what can you do?", ("`allow_write_tools` in the settings switches them on",)),
        ("who are you?", ("I am Packetgate",)),
        ("What is love?", ("No tool matches",)),
        ("Don't delete a.txt", ("Nothing was done",)),
        ("Convert the photographs in the directory", ('"photographs"', "`/list_directory", "`/convert_time")),
        ("Sing", ('"sing"',)),
    ],
)
async def test_answers_without_a_call(request_: str, parts: tuple[str, ...]):
    text = await answer(asking(request_))
    assert all(part in text for part in parts)


async def test_answers_without_tools():
    assert "files" not in await answer(asking("Hello"), Catalogue())
    assert "`create_router(tools=[...])`" in await answer(asking("Read a.txt"), Catalogue())
    by_command = asking("Hello").header.changed(switch_hints=SwitchHints(**BY_COMMAND))
    assert "packetgate doctor" in await answer(
        asking("Read a.txt").model_copy(update={"header": by_command}), Catalogue()
    )
