"""The proxy asks about changes in a way that the client supports, and accepts each answer once."""

import asyncio
import json
import logging
import re
from functools import partial
from pathlib import Path

import mcp_types
import pytest
from mcp import MCPError
from support.command_line import CommandLine
from support.proxies import (
    ADD,
    DESK,
    IDE,
    LEGACY,
    MODERN,
    TOKENS,
    Protocol,
    configured_client,
    gateway_over,
    ledger_server,
    proxy_client,
    rules,
    served,
    talking,
)

from packetgate.connectors.proxy.calling import READING_S
from packetgate.connectors.proxy.gateway import Gateway
from packetgate.gate.gate import Gate
from packetgate.tools.catalogue.preferences import Policy, Preferences


async def events(gateway: Gateway) -> list[str]:
    """Return the journal's entries of every call, in order."""
    names = ("call_proposed", "call_approved", "call_denied", "call_skipped", "call_started", "call_ended")
    return [row.entry.event for row in await gateway.gate.journal.event_entries(*names)]


async def test_an_approved_write_runs_and_is_journaled(tmp_path: Path, kind: Protocol, written: list[str]) -> None:
    async with proxy_client(
        tmp_path, ledger_server(written), kind=kind, answer=lambda *_: "yes", allow_write_tools=True
    ) as talk:
        result = await talk.call("call_changing_tool", **ADD)
        assert (result.is_error, result.text, written) == (False, "added x", ["x"])
        assert "ledger.add_entry" in talk.asked[0]
        assert '"text": "x"' in talk.asked[0]
        assert await events(talk.gateway) == ["call_proposed", "call_approved", "call_started", "call_ended"]
        assert not (await talk.call("ledger.add_entry", text="y")).is_error
        assert (len(talk.asked), written) == (2, ["x", "y"])
        assert not (await talk.call("ledger.add_entry", text="y")).is_error
        assert ["an equal call ran at 2" in asked and "ended as executed" in asked for asked in talk.asked[1:]] == [
            False,
            True,
        ]


async def test_equal_calls_at_once_have_one_question(tmp_path: Path, written: list[str]) -> None:
    async with proxy_client(tmp_path, ledger_server(written), allow_write_tools=True) as talk:
        calls = [talk.call("call_changing_tool", **ADD) for _ in range(3)]
        refusals = {result.text for result in await asyncio.gather(*calls)}
        assert len(refusals) == 1
        assert "answer --session proxy-" in refusals.pop()
        assert len(talk.gateway.parked_calls) == 1
    assert written == []


@pytest.mark.parametrize("reading_s", [0, READING_S + 0.1])
async def test_a_declined_call_does_not_run_and_is_parked_if_nobody_read_the_question(
    tmp_path: Path, kind: Protocol, written: list[str], reading_s: float
) -> None:
    async def decline(*_: object) -> None:
        await asyncio.sleep(reading_s)

    async with proxy_client(
        tmp_path, ledger_server(written), kind=kind, answer=decline, allow_write_tools=True
    ) as talk:
        result = await talk.call("call_changing_tool", **ADD)
        if reading_s:
            assert (result.is_error, result.structured["status"]) == (True, "user_denied")
            assert await events(talk.gateway) == ["call_proposed", "call_denied"]
        else:
            assert "refused the question before a person could read it, so nobody was asked" in result.text
            assert (await talk.call("call_changing_tool", **ADD)).text == result.text
            assert len(talk.asked) == 1
            assert await events(talk.gateway) == ["call_proposed", "call_skipped", "call_proposed"]
        assert written == []


async def test_without_elicitation_the_refusal_says_how_to_allow_the_call(
    tmp_path: Path, kind: Protocol, written: list[str]
) -> None:
    async with proxy_client(tmp_path, ledger_server(written), kind=kind, allow_write_tools=True) as talk:
        for _ in range(2):
            result = await talk.call("call_changing_tool", **ADD)
            assert result.is_error
            assert "packetgate answer --session" in result.text
        assert written == []
        assert await events(talk.gateway) == ["call_proposed"]


@pytest.mark.parametrize(("kind", "answer"), [(LEGACY, "yes"), (MODERN, "no")])
async def test_a_terminal_answers_a_pending_call_and_its_result_is_returned_once(
    cli: CommandLine, kind: Protocol, answer: str
) -> None:
    call = {"name": "ai.write", "arguments": {"path": "new.txt", "content": "hello", "mode": "overwrite"}}
    async with configured_client(cli.folder, cli.home, {}, kind, allow_write_tools=True) as talk:
        refused = await talk.call("call_changing_tool", **call)
        session = re.search(r"answer --session ([\w-]+)", refused.text)
        assert session
        shown = await asyncio.to_thread(partial(cli.run, "answer", "--session", session[1]))
        assert "new.txt" in shown.out + shown.err
        await asyncio.to_thread(partial(cli.run, "answer", "--session", session[1], answer))
        assert (cli.folder / "new.txt").exists() == (answer == "yes")
        result = await talk.call("call_changing_tool", **call)
        assert result.structured["status"] == ("executed" if answer == "yes" else "user_denied")
        assert "packetgate answer" in (await talk.call("call_changing_tool", **call)).text


async def test_a_denied_tool_is_not_listed(tmp_path: Path, kind: Protocol) -> None:
    async with proxy_client(
        tmp_path, ledger_server([]), kind=kind, preferences=rules("deny", "ledger.read_mail")
    ) as talk:
        assert "ledger__read_mail" not in await talk.names()
        assert (await talk.call("call_read_tool", name="ledger.read_mail")).is_error


async def test_a_remembered_answer_applies_to_its_client_after_a_restart(
    tmp_path: Path, kind: Protocol, written: list[str]
) -> None:
    preferences = Preferences(policy=Policy(remember="always"))
    visits_by_process = (
        ((IDE, True, "oak"), (IDE, False, "elm"), (DESK, True, "ash")),
        ((DESK, False, "yew"), (IDE, False, "fir")),
    )
    for visits in visits_by_process:
        async with (
            gateway_over(ledger_server(written), home=tmp_path, preferences=preferences, allow_write_tools=True) as gw,
            served(gw, TOKENS) as url,
        ):
            for token, is_asked, text in visits:
                async with talking(gw, url, kind, lambda *_: "always", token) as talk:
                    add = {"name": "ledger.add_entry", "arguments": {"text": text}}
                    assert not (await talk.call("call_changing_tool", **add)).is_error
                    assert [f"asked by {TOKENS[token]} in proxy" in question for question in talk.asked] == [
                        True
                    ] * is_asked
    assert written == ["oak", "elm", "ash", "yew", "fir"]


async def test_a_questions_state_is_valid_once_and_only_for_its_call(tmp_path: Path, written: list[str]) -> None:
    yes = {"input_responses": {"answer": mcp_types.ElicitResult(action="accept", content={"answer": "yes"})}}
    async with proxy_client(
        tmp_path, ledger_server(written), kind=MODERN, answer=lambda *_: "yes", allow_write_tools=True
    ) as talk:
        call = partial(talk.client.session.call_tool, "call_changing_tool")
        state = (await call(ADD, allow_input_required=True)).request_state
        assert "ledger" not in json.dumps(state)
        for arguments, given in (
            ({**ADD, "arguments": {"text": "y"}}, state),
            ({**ADD, "name": "ledger.list_entries"}, state),
            (ADD, f"{state[:-2]}AA"),
        ):
            with pytest.raises(MCPError, match="requestState"):
                await call(arguments, request_state=given, **yes)
        assert written == []
        assert not (await call(ADD, request_state=state, **yes)).is_error
        again = await call(ADD, request_state=state, allow_input_required=True, **yes)
        assert isinstance(again, mcp_types.InputRequiredResult)
        assert written == ["x"]


async def test_internal_errors_are_logged_and_refusals_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: list[str]
) -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler(logging.WARNING)
    monkeypatch.setattr(handler, "emit", records.append)
    logging.getLogger("fastmcp").addHandler(handler)

    async def broken(*_args: object) -> None:
        raise OSError("the disk is full")

    try:
        async with proxy_client(tmp_path, ledger_server(written)) as talk:
            for name in ("ledger.raed", "ledger.add_entry"):
                assert (await talk.call("call_read_tool", name=name)).is_error
            assert records == []
            monkeypatch.setattr(Gate, "run", broken)
            result = await talk.call("call_read_tool", name="ledger.list_entries")
    finally:
        logging.getLogger("fastmcp").removeHandler(handler)
    assert result.is_error
    assert "disk" not in result.text
    assert [record.levelname for record in records] == ["ERROR"]
