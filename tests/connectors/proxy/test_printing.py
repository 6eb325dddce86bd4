"""What the proxy prints: of a call that it refuses nothing, as its client is told; of what broke, all."""

import logging
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from support.command_line import COMMAND, CommandLine
from support.proxies import gateway_over, ledger_server, served, talking

from packetgate.connectors.proxy.chain import Chain

REFUSED: dict[str, dict[str, Any]] = {
    "no such tool": {"name": "ai.raed", "arguments": {}},
    "not a read": {"name": "ai.write", "arguments": {"path": "a.txt", "content": "x"}},
    "not valid": {"name": "ai.read", "arguments": {"path": []}},
    "no such context": {"name": "ai.read", "arguments": {}, "context_id": "ctx_none"},
}


async def test_a_refusal_is_told_to_the_client_alone(cli: CommandLine) -> None:
    log = cli.folder.with_name("printed")
    transport = StdioTransport(
        str(COMMAND), ["proxy", "--allow-writes"], cwd=str(cli.folder), env=cli.environment, log_file=log
    )
    async with Client(transport, mode="legacy") as client:
        for call in REFUSED.values():
            assert (await client.call_tool_mcp("call_read_tool", call)).is_error
        assert (await client.call_tool_mcp("call_changing_tool", REFUSED["not a read"])).is_error  # nobody can be asked
        assert (await client.call_tool_mcp("nowhere.read", {})).is_error
    assert log.read_text() == ""


async def test_what_breaks_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: list[str]) -> None:
    """By FastMCP, whose logger gives it to no other."""
    printed: list[str] = []

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            printed.append(f"{record.levelname} {record.getMessage()} {record.exc_info}")

    async def broken(*_args: object, **_how: object) -> None:
        raise OSError("the disk is full")

    heard = Heard(logging.WARNING)
    logging.getLogger("fastmcp").addHandler(heard)
    try:
        async with (
            gateway_over(ledger_server(written), home=tmp_path) as gateway,
            served(gateway) as address,
            talking(f"{address}/mcp", "sdk", "legacy") as talk,
        ):
            assert (await talk.call("call_read_tool", **REFUSED["no such tool"])).is_error
            assert printed == []
            monkeypatch.setattr(Chain, "executed", broken)
            said = await talk.call("call_read_tool", name="ledger.list_entries", arguments={})
    finally:
        logging.getLogger("fastmcp").removeHandler(heard)
    assert said.is_error
    assert "disk" not in said.text
    (line,) = printed
    assert line.startswith("ERROR")
    assert "the disk is full" in line
