"""What `packetgate chat` says of an answer from the cache, with a server of its own process."""

import json
import sys

from support import tide_server
from support.command_line import CommandLine
from support.terminals import Terminal, chatting, leave

ASK = "tide.read_level at Brest"


def hears(child: Terminal, request: str, *answer: str) -> None:
    """Say something, and wait for its answer and the next prompt."""
    child.sendline(request)
    for part in answer:
        child.expect_exact(part)
    child.expect("you> ")


def test_a_user_sees_what_came_from_the_cache_and_may_have_it_read_anew(cli: CommandLine) -> None:
    entry = {"command": sys.executable, "args": [tide_server.__file__]}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"tide": entry}}))
    (cli.folder / "packetgate.toml").write_text('[tools."tide.read_level"]\nrisk = "read"\n')
    with chatting(cli) as child:
        hears(child, ASK, "read number 1")
        hears(child, ASK, "executed from the cache", "read number 1", "[tide.read_level: from the cache, as read")
        hears(child, f"{ASK} again", "read number 2")
        assert leave(child) == 0
    told = cli.run("audit", "--session", "s").out
    assert "executed: tide.read_level from the cache, as read" in told
    assert told.count("started tide.read_level") == 2
    assert "marked" not in told
    (usage,) = json.loads(cli.run("tools", "--usage", "--json").out)
    assert (usage["asked"], usage["executed"], usage["cached"]) == (3, 2, 1)
    assert "2 executed, 1 cached" in cli.run("tools", "--usage").out


def test_a_user_says_how_long_what_a_tool_returned_holds(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text('[tools."ai.read"]\ncache_seconds = 600\n')
    with chatting(cli) as child:
        hears(child, "Read plan.txt", "opens at seven")
        (cli.folder / "plan.txt").write_text("The gate opens at nine.\n")
        hears(child, "Read plan.txt", "executed from the cache", "opens at seven")
        assert leave(child) == 0
    assert "nine" in cli.run("ask", "Read plan.txt", "--session", "s").out
    (cli.folder / "packetgate.toml").write_text('[tools."ai.read"]\ncache_seconds = -1\n')
    done = cli.run("ask", "Read plan.txt")
    assert done.status == 2
    assert "cache_seconds" in done.err
