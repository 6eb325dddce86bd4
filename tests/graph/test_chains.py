"""A chain is called as one tool, and each of its calls passes the gate separately."""

from typing import Any

import pytest
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import ScriptedReviewer, approving, call, scripted

from packetgate.gate.journal import STARTED, MemoryJournal
from packetgate.state.errors import ConfigError
from packetgate.state.transitions import ToolExecutionStatus as Status
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.servers.config import McpConfig, load_config
from packetgate.tools.servers.opening import ChainServer, open_hub
from packetgate.tools.usage.learning import confirmed_uses

READ, WRITE, LIST = "notebook.read_note", "notebook.write_note", "notebook.list_notes"


def chain(*steps: tuple[str, dict[str, Any]]) -> Preferences:
    """Return preferences with the chain `copy` of these steps."""
    said = {
        "description": "Copy a note.",
        "parameters": {"source": "The note to copy.", "target": "The new note."},
        "steps": [{"tool": tool, "params": params} for tool, params in steps],
    }
    return Preferences.model_validate({"chains": {"copy": said}})


COPY = chain((READ, {"name": "{source}"}), (WRITE, {"name": "{target}", "text": "{source}: {1}"}))
CHOSEN = call("chain.copy", source="a", target="z")


def over(notebook: Notebook, said: Preferences = COPY, *, deciders: Any = None, **context: Any) -> Any:
    servers = notebook, ChainServer(said.chains)
    return session(deciders or scripted(CHOSEN), *servers, preferences=said, **context)


def told(talk_calls: Any) -> list[tuple[str, dict[str, Any], Status]]:
    return [(one.tool_name, one.params, one.status) for one in talk_calls]


async def test_each_step_is_asked_about_and_run_separately(notebook: Notebook):
    reviewer, journal = ScriptedReviewer(approving(0.9)), MemoryJournal()
    deciders = scripted(CHOSEN, reviewer=reviewer)
    async with over(notebook, deciders=deciders, journal=journal, allow_write_tools=True) as talk:
        asked = await talk.ask("Copy a to z")
        assert notebook.called == ["read_note"]
        (question,) = asked.question["action_requests"]
        assert (question["name"], question["args"]) == (WRITE, {"name": "z", "text": "a: apples"})
        packet = await talk.reply("yes")
    assert told(packet.routing.all_calls) == [
        ("chain.copy", {"source": "a", "target": "z"}, Status.EXECUTED),
        (READ, {"name": "a"}, Status.EXECUTED),
        (WRITE, {"name": "z", "text": "a: apples"}, Status.EXECUTED),
    ]
    assert notebook.notes["z"] == "a: apples"
    assert packet.routing.reinjection_count == 1, "it is one step"
    judged = [one.tool_name for seen in reviewer.seen for one in seen.routing.calls]
    assert judged == ["chain.copy"], "the chain is what was chosen"
    unranked = packet.with_update({"context": packet.context.model_copy(update={"palette": ()})})
    assert {one.tool for one in confirmed_uses(unranked)} == {"chain.copy"}, "its steps served the chain"
    started = [row.entry.detail["tool"] for row in await journal.event_entries(STARTED)]
    assert started == ["chain.copy", READ, WRITE]


async def test_a_write_that_is_switched_off_is_a_dry_run(notebook: Notebook):
    async with over(notebook) as talk:
        packet = await talk.say("Copy a to z")
    assert [status for *_, status in told(packet.routing.all_calls)] == [
        Status.EXECUTED,
        Status.EXECUTED,
        Status.SKIPPED,
    ]
    assert notebook.called == ["read_note"]


@pytest.mark.parametrize(
    ("said", "source", "why"),
    [
        (COPY, "no such note", f"chain.copy stopped before step 2 ({WRITE}): {READ} is failed"),
        (
            chain((READ, {"name": "{source}"}), (WRITE, {"name": "{target}", "text": "{1.colour}"})),
            "a",
            f"chain.copy stopped before step 2 ({WRITE}): ",
        ),
        (
            chain((READ, {"name": "{source}"}), (WRITE, {"name": "{target}"})),
            "a",
            f"chain.copy stopped before step 2 ({WRITE}): ",
        ),
        (chain(("notebook.burn", {"name": "{source}"})), "a", "chain.copy stopped before step 1 (notebook.burn): "),
    ],
    ids=["failed", "no such field", "not valid", "no such tool"],
)
async def test_a_chain_ends_at_an_invalid_step(notebook: Notebook, said: Preferences, source: str, why: str):
    deciders = scripted(call("chain.copy", source=source, target="z"))
    async with over(notebook, said, deciders=deciders, allow_write_tools=True) as talk:
        packet = await talk.say("Copy it to z")
    assert packet.routing.note.startswith(why)
    assert why[0].upper() + why[1:] in packet.response.candidate
    assert "write_note" not in notebook.called


async def test_a_server_cannot_define_tools_of_the_chain_namespace(tmp_path: Any):
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"chain": {"command": "x"}}}')
    config: McpConfig = load_config(tmp_path / "mcp.json", tmp_path)
    with pytest.raises(ConfigError, match="the server name 'chain' is reserved"):
        await open_hub(config, tmp_path, tmp_path, None, patience_s=1.0, preferences=COPY)
