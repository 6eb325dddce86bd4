"""Disabled writes change nothing; the question about a write shows its difference."""

from pathlib import Path

import pytest
from support.graphs import run_once, session
from support.notebook import Notebook
from support.scripted_deciders import call, scripted

from packetgate.state.transitions import ToolExecutionStatus
from packetgate.toolsets.servers.opening import BuiltinServer, builtin_servers

SAVE = call("notebook.save_note", name="a", text="avocado")


async def test_a_trusted_server_runs_its_own_dry_run(notebook: Notebook):
    packet = await run_once(scripted(SAVE), "Save avocado as a", notebook.connection(trusted=True))
    assert notebook.calls == [("save_note", {"name": "a", "text": "avocado", "dry_run": True})]
    assert notebook.notes["a"] == "apples"
    (done,) = packet.routing.all_calls
    assert done.status is ToolExecutionStatus.SKIPPED
    assert done.result is not None
    assert done.result.dry_run
    assert "would save 7 characters as a" in packet.response.candidate
    assert "Nothing was done: write tools are switched off" in packet.response.candidate
    assert packet.governance.dry_run


async def test_an_enabled_and_approved_write_runs(notebook: Notebook):
    async with session(scripted(SAVE), notebook.connection(trusted=True), allow_write_tools=True) as talk:
        asked = await talk.ask("Save avocado as a")
        assert asked.question["action_requests"][0]["args"] == {"name": "a", "text": "avocado"}
        packet = await talk.reply("yes")
    rehearsed, done = ({"name": "a", "text": "avocado", "dry_run": dry_run} for dry_run in (True, False))
    assert notebook.calls == [("save_note", rehearsed), ("save_note", done)]
    assert notebook.notes["a"] == "avocado"
    assert [one.event for one in packet.governance.audit] == ["dry_run_passed", "call_approved", "call_executed"]
    assert packet.routing.all_calls[0].status is ToolExecutionStatus.EXECUTED
    assert not packet.governance.dry_run


WRITE = call("ai.write", path="plan.txt", content="new\n", mode="overwrite")


@pytest.fixture
def files(tmp_path: Path) -> BuiltinServer:
    (tmp_path / "plan.txt").write_text("old\n")
    return builtin_servers(tmp_path)["ai"]


async def test_the_question_shows_the_difference_and_exactly_that_runs(files: BuiltinServer, tmp_path: Path):
    async with session(scripted(WRITE), files, allow_write_tools=True) as talk:
        asked = await talk.ask("Write new to plan.txt")
        (request,) = asked.question["action_requests"]
        assert request["preview"].startswith("Would overwrite plan.txt: 1 line, 4 bytes\n--- plan.txt (before)")
        assert request["preview"].endswith("@@ -1 +1 @@\n-old\n+new")
        assert request["description"].endswith(f"```diff\n{request['preview']}\n```")
        assert request["args"] == {"path": "plan.txt", "content": "new\n", "mode": "overwrite"}
        again = await talk.ask_again({"type": "edit", "args": {"args": {"path": 7}}})
        assert again.question["action_requests"][0]["preview"] == request["preview"]
        packet = await talk.reply("yes")
    assert (tmp_path / "plan.txt").read_text() == "new\n"
    assert [one.params for one in packet.routing.all_calls] == [request["args"]]
    assert "@@" not in packet.model_dump_json()
    trail = ["dry_run_passed", "call_approved", "call_executed"]
    assert [one.event for one in packet.governance.audit] == trail


@pytest.mark.parametrize(("path", "shown"), [("the plan", True), (".env", False), ("link.txt", False)])
async def test_the_preview_does_not_show_a_file_of_secrets(
    files: BuiltinServer, tmp_path: Path, path: str, shown: bool
):
    (tmp_path / ".env").write_text("KEY=hush-hush\nold\n")
    (tmp_path / "link.txt").symlink_to(".env")
    edit = call("ai.edit", path=path, old_text="old", new_text="new")
    async with session(scripted(edit), files, allow_write_tools=True) as talk:
        asked = await talk.ask(f"Replace old with new in {path}")
    (request,) = asked.question["action_requests"]
    assert bool(request["preview"]) == shown
    assert request["args"]["path"] == ("plan.txt" if shown else ".env"), "the approved arguments are the real ones"
    assert "hush" not in str(asked.question)
    assert any("contains keys or secrets" in str(warning) for warning in request["warnings"]) != shown
