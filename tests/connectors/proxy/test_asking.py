"""What changes something is asked about, by the way that the client offers; each answer counts once."""

import asyncio
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import mcp
import mcp_types
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp import MCPError
from support.command_line import CommandLine
from support.fork_server import COMMAND
from support.proxies import Era, Make, gateway_over, ledger_server, served, talking

from packetgate.connectors.proxy import asking
from packetgate.connectors.proxy.gateway import Gateway
from packetgate.tools.catalogue.preferences import Policy, Preferences
from packetgate.tools.policy.rules import Rule

ADD: dict[str, Any] = {"name": "ledger.add_entry", "arguments": {"text": "x"}}


async def events(gateway: Gateway) -> list[str]:
    """Return what the journal has of every call, in order."""
    wanted = ("call_proposed", "call_approved", "call_denied", "call_skipped", "call_started", "call_ended")
    return [row.entry.event for row in await gateway.chain.journal.of_events(*wanted)]


async def test_a_write_is_asked_about_and_runs_when_allowed(
    tmp_path: Path, make: Make, era: Era, written: list[str]
) -> None:
    async with (
        gateway_over(ledger_server(written), home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era, answer=lambda *_: "yes") as talk,
    ):
        said = await talk.call("call_changing_tool", **ADD)
        assert not said.is_error
        assert said.text == "added x"
        assert written == ["x"]
        assert len(talk.asked) == 1
        assert "ledger.add_entry" in talk.asked[0]
        assert '"text": "x"' in talk.asked[0]
        assert await events(gateway) == ["call_proposed", "call_approved", "call_started", "call_ended"]


async def test_a_listed_write_is_asked_about_too(tmp_path: Path, make: Make, era: Era, written: list[str]) -> None:
    async with (
        gateway_over(ledger_server(written), home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era, answer=lambda *_: "yes") as talk,
    ):
        said = await talk.call("ledger.add_entry", text="x")
        assert not said.is_error
        assert (len(talk.asked), written) == (1, ["x"])


@pytest.mark.parametrize(
    ("answer", "person_s", "status", "noted", "why"),
    [
        (None, 0.0, "user_denied", "call_denied", ""),
        ("no", 3600.0, "user_denied", "call_denied", ""),
        (None, 3600.0, "skipped", "call_skipped", "the client declined at once, without asking a person"),
    ],
)
async def test_what_is_turned_down_does_not_run_and_only_a_person_denies(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Make,
    era: Era,
    written: list[str],
    answer: str | None,
    person_s: float,
    status: str,
    noted: str,
    why: str,
) -> None:
    monkeypatch.setattr(asking, "PERSON_S", person_s)
    async with (
        gateway_over(ledger_server(written), home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era, answer=lambda *_: answer) as talk,
    ):
        said = await talk.call("call_changing_tool", **ADD)
        assert said.is_error
        assert said.structured["status"] == status
        assert why in said.text
        assert written == []
        assert await events(gateway) == ["call_proposed", noted]


async def test_an_answer_that_was_not_offered_lets_nothing_run(tmp_path: Path, era: Era, written: list[str]) -> None:
    async with (
        gateway_over(ledger_server(written), home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", "sdk", era, answer=lambda *_: "always") as talk,
    ):
        said = await talk.call("call_changing_tool", **ADD)
        assert said.is_error
        assert said.structured["status"] == "skipped"
        assert written == []


async def test_a_client_that_cannot_ask_after_all_denies_nothing(tmp_path: Path, written: list[str]) -> None:
    def fails(*_: Any) -> str:
        raise RuntimeError("no window")

    async with (
        gateway_over(ledger_server(written), home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", "fastmcp", "legacy", answer=fails) as talk,
    ):
        said = await talk.call("call_changing_tool", **ADD)
        assert said.structured["status"] == "skipped"
        assert "the client could not ask" in said.text
        assert written == []


async def test_where_nobody_can_be_asked_the_refusal_says_how_to_allow_it(
    tmp_path: Path, make: Make, era: Era, written: list[str]
) -> None:
    async with (
        gateway_over(ledger_server(written), home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era) as talk,
    ):
        for _ in range(2):
            said = await talk.call("call_changing_tool", **ADD)
            assert said.is_error
            assert "nobody could be asked" in said.text
            assert "[[policy.rules]]" in said.text
            assert "packetgate answer --session" in said.text
        assert written == []
        assert await events(gateway) == ["call_proposed"]


@pytest.mark.parametrize(("answer", "database"), [("yes", "sqlite"), ("no", "sqlite"), ("yes", "postgres")])
async def test_what_waits_is_answered_beside_the_client_and_its_result_is_fetched_once(
    request: pytest.FixtureRequest, cli: CommandLine, answer: str, database: str
) -> None:
    """With PostgreSQL it is answered on another machine."""
    where = {"PACKETGATE_DATABASE_URL": request.getfixturevalue("postgres")} if database == "postgres" else {}
    other = CommandLine(cli.folder, cli.home.with_name("another home")) if where else cli
    environment = {**cli.environment, **where}
    transport = StdioTransport(str(COMMAND), ["proxy", "--allow-writes"], cwd=str(cli.folder), env=environment)
    call = {"name": "ai.write", "arguments": {"path": "new.txt", "content": "hello", "mode": "overwrite"}}
    async with Client(transport, mode="legacy") as client:
        said = await client.call_tool_mcp("call_changing_tool", call)
        text = said.content[0].text
        assert said.is_error
        session = re.search(r"--session (\S+) yes", text)[1]
        shown = await asyncio.to_thread(partial(other.run, "answer", "--session", session, **where))
        assert "new.txt" in shown.out + shown.err
        done = await asyncio.to_thread(partial(other.run, "answer", "--session", session, answer, **where))
        assert done.status in {0, 1}, done.err
        assert (cli.folder / "new.txt").exists() == (answer == "yes")
        again = await client.call_tool_mcp("call_changing_tool", call)
        assert again.is_error == (answer == "no")
        assert again.structured_content["status"] == ("executed" if answer == "yes" else "user_denied")
        anew = await client.call_tool_mcp("call_changing_tool", call)
        assert "packetgate answer" in anew.content[0].text


async def test_the_policy_allows_and_denies_by_channel(
    tmp_path: Path, make: Make, era: Era, written: list[str]
) -> None:
    rules = [
        Rule.model_validate({"effect": "allow", "tool": "ledger.add_entry", "channels": ["proxy"]}),
        Rule.model_validate({"effect": "deny", "tool": "ledger.read_mail", "channels": ["proxy"]}),
    ]
    preferences = Preferences(policy=Policy(rules=rules))
    async with (
        gateway_over(ledger_server(written), home=tmp_path, preferences=preferences, allow_write_tools=True) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era) as talk,
    ):
        assert "ledger__read_mail" not in await talk.names()
        assert (await talk.call("call_read_tool", name="ledger.read_mail")).is_error
        assert not (await talk.call("call_changing_tool", **ADD)).is_error
        assert written == ["x"]


async def test_what_is_remembered_is_not_asked_about_again_and_outlives_the_process(
    tmp_path: Path, make: Make, era: Era, written: list[str]
) -> None:
    preferences = Preferences(policy=Policy(remember="always"))
    for answer in ("always", None):
        async with (
            gateway_over(
                ledger_server(written), home=tmp_path, preferences=preferences, allow_write_tools=True
            ) as gateway,
            served(gateway) as address,
            talking(f"{address}/mcp", make, era, answer=lambda *_, answer=answer: answer) as talk,
        ):
            assert not (await talk.call("call_changing_tool", **ADD)).is_error
            assert len(talk.asked) == (answer is not None)
    assert written == ["x", "x"]


TREES = ["oak", "elm", "ash", "yew", "fir"]


async def test_what_is_remembered_holds_for_the_client_that_was_asked(
    tmp_path: Path, make: Make, era: Era, written: list[str]
) -> None:
    tokens = {f"{name}-token-0123456789": name for name in ("ide", "desk")}
    preferences = Preferences(policy=Policy(remember="always"))
    async with (
        gateway_over(ledger_server(written), home=tmp_path, preferences=preferences, allow_write_tools=True) as gateway,
        served(gateway, tokens) as address,
    ):
        ide, desk = tokens
        turns = (
            (ide, True, "oak"),
            (ide, False, "elm"),
            (desk, True, "ash"),
            (desk, False, "yew"),
            (ide, False, "fir"),
        )
        for token, asks, text in turns:
            async with talking(f"{address}/mcp", make, era, lambda *_: "always", token) as talk:
                add = {"name": "ledger.add_entry", "arguments": {"text": text}}
                assert not (await talk.call("call_changing_tool", **add)).is_error
                assert len(talk.asked) == asks
                assert f"asked by {tokens[token]} in proxy" in "".join(talk.asked) or not asks
    assert written == TREES


async def test_a_destination_that_only_a_text_gave_is_shown_with_its_sentence(
    tmp_path: Path, make: Make, written: list[str]
) -> None:
    server = ledger_server(written)

    @server.tool
    def send_invoice(to: str) -> str:
        """Send the invoice by mail."""
        written.append(to)
        return "sent"

    rule = Rule.model_validate({"effect": "allow", "tool": "ledger.send_invoice"})
    preferences = Preferences(policy=Policy(rules=[rule]))
    async with (
        gateway_over(server, home=tmp_path, preferences=preferences, allow_write_tools=True) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, "legacy", answer=lambda *_: "no") as talk,
    ):
        await talk.call("set_context", query="read my mail")
        await talk.call("ledger.read_mail")
        said = await talk.call("ledger.send_invoice", to="billing@elsewhere.example")
        assert said.is_error
        assert len(talk.asked) == 1
        assert "please send the invoice to" in talk.asked[0]
        assert written == []


async def _asked(client: mcp.Client, arguments: dict[str, Any]) -> mcp_types.InputRequiredResult:
    result = await client.session.call_tool("call_changing_tool", arguments, allow_input_required=True)
    assert isinstance(result, mcp_types.InputRequiredResult)
    return result


def _answer(said: str) -> dict[str, Any]:
    return {"answer": mcp_types.ElicitResult(action="accept", content={"answer": said})}


async def test_the_state_of_a_question_holds_once_and_for_this_call_alone(tmp_path: Path, written: list[str]) -> None:
    async with (
        gateway_over(ledger_server(written), home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", "sdk", "2026-07-28", answer=lambda *_: "yes") as talk,
    ):
        session = talk.client.session
        asked = await _asked(talk.client, ADD)
        state = asked.request_state
        assert "ledger" not in json.dumps(state)

        for changed in ({**ADD, "arguments": {"text": "y"}}, {**ADD, "name": "ledger.list_entries"}):
            with pytest.raises(MCPError, match="requestState"):
                await session.call_tool(
                    "call_changing_tool", changed, input_responses=_answer("yes"), request_state=state
                )
        with pytest.raises(MCPError, match="requestState"):
            await session.call_tool(
                "call_changing_tool", ADD, input_responses=_answer("yes"), request_state=f"{state[:-2]}AA"
            )
        assert written == []

        done = await session.call_tool("call_changing_tool", ADD, input_responses=_answer("yes"), request_state=state)
        assert not done.is_error
        again = await session.call_tool(
            "call_changing_tool", ADD, input_responses=_answer("yes"), request_state=state, allow_input_required=True
        )
        assert isinstance(again, mcp_types.InputRequiredResult)
        assert written == ["x"]
