"""`packetgate tools --usage`, through real processes."""

import json

from support.command_line import CommandLine


def test_what_was_asked_is_counted(cli: CommandLine) -> None:
    cli.run("ask", "Read plan.txt", "--session", "a.b")
    cli.run("ask", "Read gone.txt", "--session", "a.b")
    cli.run("ask", 'Write "x" to new.txt', "--session", "other")
    (cli.folder / "mcp.json").write_text('{"mcpServers": {"never": {"command": "no-such-program"}}}')
    shown = cli.run("tools", "--usage")
    assert (shown.status, shown.err) == (0, "")
    rows = [" ".join(line.split()) for line in shown.out.splitlines() if line.startswith("ai.")]
    counted = [row.rsplit(" ", 3) for row in rows]
    assert [row for row, *_ in counted] == ["ai.read 2 1 executed, 1 failed", "ai.write 1 1 skipped"]
    assert all(0.7 <= float(confidence) <= 1 for _, confidence, *_ in counted)
    assert "3 turns since 20" in shown.out
    of_one = json.loads(cli.run("tools", "--usage", "--session", "a.b", "--json").out)
    assert [(tool["tool"], tool["asked"], tool["executed"], tool["failed"]) for tool in of_one] == [
        ("ai.read", 2, 1, 1)
    ]
    assert of_one[0]["last_used"].endswith("Z")
    of_tool = cli.run("tools", "ai.write", "--usage").out
    assert "ai.write" in of_tool
    assert "ai.read" not in of_tool
    of_server = json.loads(cli.run("tools", "ai", "--usage", "--json").out)
    assert [tool["tool"] for tool in of_server] == ["ai.read", "ai.write"]
    assert "3 turns since 20" in cli.run("tools", "ai.re", "--usage").out
    assert "none of which chose 'ai.re'" in cli.run("tools", "ai.re", "--usage").out


def test_nothing_recorded_is_said(cli: CommandLine) -> None:
    assert cli.run("tools", "--usage").out == "nothing has been recorded yet\n"
    assert json.loads(cli.run("tools", "--usage", "--json").out) == []
    cli.run("ask", "Hello", PACKETGATE_USAGE_DAYS="0")
    off = cli.run("tools", "--usage", PACKETGATE_USAGE_DAYS="0")
    assert off.out == "nothing has been recorded yet: PACKETGATE_USAGE_DAYS is 0\n"
    cli.run("ask", "Hello", "--session", "a")
    assert "1 turn since 20" in cli.run("tools", "--usage").out
    assert "none of which chose a tool" in cli.run("tools", "--usage").out
    assert "nothing has been recorded of session 'b' yet" in cli.run("tools", "--usage", "--session", "b").out


def test_options_that_do_not_go_together(cli: CommandLine) -> None:
    for options in (("--session", "s"), ("--usage", "--full")):
        done = cli.run("tools", *options)
        assert done.status == 2
        assert "--usage" in done.err


def test_a_setting_out_of_range_is_one_line(cli: CommandLine) -> None:
    done = cli.run("tools", "--usage", PACKETGATE_USAGE_DAYS="-1")
    assert done.status == 2
    assert done.err.startswith("packetgate: PACKETGATE_USAGE_DAYS: ")
    assert done.err.count("\n") == 1


def test_a_corrupt_database_is_named(cli: CommandLine) -> None:
    cli.home.mkdir()
    (cli.home / "packetgate.db").write_bytes(b"this is no database\n" * 100)
    done = cli.run("tools", "--usage")
    assert done.status == 2
    assert "packetgate.db: not a usable session file" in done.err
    assert done.err.count("\n") == 1
