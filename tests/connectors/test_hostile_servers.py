"""Hostile servers: their output reaches neither the terminal nor the database."""

import json
import stat

import pytest
from support.command_line import CommandLine
from support.hostile_server import SECRET, entry


@pytest.mark.slow
def test_hostile_servers_do_not_affect_a_good_one(cli: CommandLine):
    servers = {
        **{name: entry(name) for name in ("unfit", "babbling", "dying")},
        "unset": entry("unfit", env={"KEY": "${NOT_SET_HERE}"}),
        "far": {"url": "http://127.0.0.1:9/${HOSTILE_KEY}"},
    }
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers, "builtin": True}))

    listed = cli.run("tools", HOSTILE_KEY=SECRET)
    examined = cli.run("doctor", HOSTILE_KEY=SECRET)
    asked = cli.run("ask", "--session", "s", "Read plan.txt", HOSTILE_KEY=SECRET)
    page = cli.run("trace", "last", HOSTILE_KEY=SECRET)

    assert (listed.status, examined.status, asked.status, page.status) == (0, 1, 0, 0)
    assert "The gate opens at seven." in asked.out
    assert "unfit.get_time" in listed.out
    answer = " ".join(asked.out.split())
    assert answer.index("Some servers are not available: ") < answer.index(
        "Some tools are not available: unfit: not offered: "
    )
    for done in (listed, examined, asked):
        output = " ".join((done.out + done.err).split())
        assert "unfit" in output
        assert "not offered: 'get_\\x1b[2Jnews': a name may have" in output
        assert "the environment variable NOT_SET_HERE is not set" in output
        assert "logs/dying.log" in output
    output = " ".join(examined.out.split())
    assert all(f"'get_{letter}'" in output for letter in "abcdeh")  # every omitted tool, not only the first three
    assert f"its output is in {cli.home}/logs" in " ".join(examined.out.split())
    folders = [folder for folder in (cli.home, *cli.home.iterdir()) if folder.is_dir()]
    files = [
        file for folder in folders for file in folder.iterdir() if file.is_file() and folder.name != "servers"
    ]  # `servers` contains the homes of confined servers
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert {"packetgate.db", "dying.log"} <= {file.name for file in files}
    shown = "".join(done.out + done.err for done in (listed, examined, asked, page))
    kept = [file for file in cli.home.iterdir() if file.is_file()]
    assert kept
    for hidden in (SECRET, "\x1b[2J", "\u202e", "\u200b", "Welcome!"):
        assert hidden not in shown
        assert not [file.name for file in kept if hidden.encode() in file.read_bytes()]
    assert "Traceback" not in shown
