"""The difference that a write makes stands in the question about it, and in nothing else."""

from pathlib import Path

import pytest
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted

from tools.servers.opening import BuiltinServer, builtin_servers

WRITE = call("ai.write", path="plan.txt", content="new\n", mode="overwrite")


@pytest.fixture
def files(tmp_path: Path) -> BuiltinServer:
    (tmp_path / "plan.txt").write_text("old\n")
    return builtin_servers(tmp_path)["ai"]


async def test_the_question_shows_it_and_only_what_was_approved_is_done(files: BuiltinServer, tmp_path: Path):
    async with session(scripted(WRITE), files, allow_write_tools=True) as talk:
        asked = await talk.ask("Write new to plan.txt")
        (request,) = asked.question["action_requests"]
        assert request["preview"].splitlines() == ["--- plan.txt now", "+++ plan.txt", "@@ -1 +1 @@", "-old", "+new"]
        assert request["description"].endswith(f"```diff\n{request['preview']}\n```")
        assert request["args"] == {"path": "plan.txt", "content": "new\n", "mode": "overwrite"}
        again = await talk.ask_again({"type": "edit", "args": {"args": {"path": 7}}})
        assert again.question["action_requests"][0]["preview"] == request["preview"]
        packet = await talk.reply("yes")
    assert (tmp_path / "plan.txt").read_text() == "new\n"
    assert [one.params for one in packet.routing.all_calls] == [request["args"]]
    assert "@@" not in packet.model_dump_json()
    trail = ["dry_run_passed", "preview_executed", "call_approved", "call_executed"]
    assert [one.event for one in packet.governance.audit] == trail


async def test_each_request_of_a_question_has_one_though_it_be_empty(files: BuiltinServer):
    both = calls(
        wanted("ai.write", path="plan.txt", content="new\n", mode="overwrite"),
        wanted("notebook.write_note", name="a", text="new"),
    )
    async with session(scripted(both), files, Notebook(), allow_write_tools=True) as talk:
        asked = await talk.ask("Write new to plan.txt and to a")
    shown = [request["preview"] for request in asked.question["action_requests"]]
    assert "-old\n+new" in shown[0]
    assert shown[1] == ""
