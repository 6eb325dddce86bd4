"""Proxied calls are looked up as turns are: in the trace, the audit and the record of use."""

import os

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from support.command_line import CommandLine
from support.fork_server import COMMAND


def proxy(cli: CommandLine, *options: str) -> StdioTransport:
    """Return the proxy as a client starts it."""
    environment = {**os.environ, **cli.environment}
    folder = str(cli.folder)
    return StdioTransport(str(COMMAND), ["proxy", *options], cwd=folder, env=environment, keep_alive=False)


async def test_a_call_is_traced_audited_and_counted(cli: CommandLine) -> None:
    async with Client(proxy(cli), mode="legacy") as client:
        await client.call_tool("set_context", {"query": "what does the plan say"})
        said = await client.call_tool("ai.read", {"path": "plan.txt"})
        assert said.content[0].text == "The gate opens at seven.\n"
    trace = cli.run("trace", "last")
    assert "ai.read" in trace.out
    assert "what does the plan say" in trace.out
    async with Client(proxy(cli), mode="legacy") as client:
        await client.call_tool("ai.list", {})
    audit = cli.run("audit")
    assert "proxy" in audit.out
    assert "ai.read" in audit.out
    assert cli.run("audit", "--verify").status == 0
    usage = cli.run("tools", "--usage")
    assert "ai.read" in usage.out
    assert "1 of 2 proxy sessions set a context (50%)" in usage.out


async def test_nothing_but_the_protocol_is_printed(cli: CommandLine) -> None:
    hello = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
        b'"clientInfo":{"name":"t","version":"0"}}}\n'
    )
    done = cli.run("proxy", given=hello)
    assert done.status == 0
    assert [line[:16] for line in done.out.splitlines()] == ['{"jsonrpc":"2.0"']
    assert done.err == ""


def test_what_cannot_be_used_is_one_line(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text('[proxy.clients.ide]\ntoken = "${NOT_SET_ANYWHERE}"\n')
    done = cli.run("proxy", "--http", "--port", "0")
    assert done.status == 2
    assert "NOT_SET_ANYWHERE" in done.err
    (cli.folder / "packetgate.toml").write_text("[proxy.clients.ide]\ncolour = 3\n")
    done = cli.run("proxy")
    assert done.status == 2
    assert "proxy.clients.ide.colour" in done.err
    (cli.folder / "packetgate.toml").unlink()
    done = cli.run("proxy", "--http", "--host", "0.0.0.0", "--port", "0")
    assert done.status == 2
    assert "token" in done.err
