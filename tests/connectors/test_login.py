"""`packetgate login` and `logout`, and the state of a login in `doctor` and `tools`."""

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest
from support import oauth_server
from support.command_line import CommandLine
from support.oauth_server import guarded_server

BROWSER = (
    f"import asyncio, sys; sys.path.insert(0, {str(Path(oauth_server.__file__).parents[1])!r}); "
    "from support.oauth_server import follow; asyncio.run(follow(sys.argv[1]))"
)
"""A stand-in for a browser: a program that runs until the login is done."""


async def test_a_login_works_until_logout_and_doctor_shows_its_state(cli: CommandLine) -> None:
    async with guarded_server() as guarded:
        (cli.folder / "mcp.json").write_text(
            json.dumps({"mcpServers": {"notes": {"url": guarded.url, "auth": "oauth"}, "it": {"command": "it"}}})
        )
        before = await asyncio.to_thread(cli.run, "doctor", "--json")
        found = [(one["verdict"], one["how"]) for one in json.loads(before.out) if one["what"] == "notes"]
        assert found == [
            ("bad", "it needs a login: run `packetgate login notes`"),
            ("note", "not logged in: run `packetgate login notes`"),
        ]
        browser = shlex.join([sys.executable, "-c", BROWSER, "%s"])
        done = await asyncio.to_thread(cli.run, "login", "notes", BROWSER=browser)
        assert done.status == 0, done.err
        assert f"{guarded.provider.base_url}authorize?" in done.out
        assert "notes: logged in until" in done.out
        after = await asyncio.to_thread(cli.run, "doctor", "--json")
        found = [(one["verdict"], one["how"]) for one in json.loads(after.out) if one["what"] == "notes"]
        assert found[0] == ("ok", "1 tool; a remote server")
        assert found[1][0] == "ok"
        assert "scopes: notes tasks; stored in" in found[1][1]
        secrets = [*guarded.provider.access_tokens, *guarded.provider.refresh_tokens]
        assert not [secret for secret in secrets if secret in done.out + done.err + after.out + after.err]
        assert (await asyncio.to_thread(cli.run, "logout", "notes")).out == "notes: the login was deleted\n"
        assert (await asyncio.to_thread(cli.run, "logout", "notes")).out == "notes: there was no login\n"


@pytest.mark.parametrize(
    ("server", "error"),
    [
        ("other", "there is no server 'other' in mcp.json; servers: it"),
        ("it", "server 'it' needs no login: its entry has a"),
    ],
)
def test_a_server_that_needs_no_login_is_an_error(cli: CommandLine, server: str, error: str) -> None:
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"it": {"command": "it"}}}))
    for command in ("login", "logout"):
        done = cli.run(command, server)
        assert done.status == 2
        assert error in done.err
