"""The commands that the proxy prints for a person work as printed in another shell and another folder."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from support.fork_server import COMMAND
from support.pages import ROOT
from support.programs import require

WAITING = 3
"""Exit status of a command that waits for an answer."""
SERVER = """
from pathlib import Path

from plain_server import PlainServer

server = PlainServer("notes")


@server.tool
async def add_line(text: str) -> str:
    "Add a line to the notes."
    with Path("notes.txt").open("a") as file:
        file.write(text)
    return "added"


server.run()
"""


class Person:
    """A person with a project whose path needs quotes, and a shell in another folder."""

    def __init__(self, place: Path) -> None:
        self.home, self.elsewhere, self.project = place / "person", place / "elsewhere", place / "it's a project"
        for folder in (self.home / ".cursor", self.elsewhere, self.project):
            folder.mkdir(parents=True)
        entry = {"command": sys.executable, "args": ["notes.py"]}
        (self.project / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))
        (self.project / "notes.py").write_text(SERVER)
        plain = ROOT / "tests" / "support" / "plain_server.py"
        (self.project / "plain_server.py").write_text(plain.read_text())
        self.cursor = self.home / ".cursor" / "mcp.json"
        self.cursor.write_text('{"mcpServers": {}}')
        self.environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}

    def paste(self, command: str, folder: Path | None = None, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a line in a new shell, by default outside the project's folder."""
        environment = self.environment | variables
        return subprocess.run(
            ["sh", "-c", command],
            cwd=folder or self.elsewhere,
            env=environment,
            input="",
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


async def refused(client: Client, text: str) -> str:
    call = {"name": "notes.add_line", "arguments": {"text": text}}
    result = await client.call_tool_mcp("call_changing_tool", call)
    return "\n".join(getattr(part, "text", "") for part in result.content)


@pytest.mark.slow
async def test_a_call_of_an_installed_proxy_is_allowed_from_another_folder(person: Person) -> None:
    before = person.cursor.read_text()
    install = f"{COMMAND} proxy --install cursor --allow-writes"
    installed = person.paste(install, person.project, PACKETGATE_HOME="../my data")
    assert installed.returncode == 0, installed.stderr
    entry = json.loads(person.cursor.read_text())["mcpServers"]["packetgate"]
    environment = person.environment | entry["env"] | {"PACKETGATE_ANSWER_WAIT_S": "0"}
    transport = StdioTransport(entry["command"], entry["args"], environment, str(person.elsewhere))
    notes = person.project / "notes.txt"
    async with Client(transport) as client:
        shown = command(await refused(client, "one"))
        question = await asyncio.to_thread(person.paste, shown)
        assert question.returncode == WAITING, question.stderr
        assert "text = one" in question.stdout
        assert not notes.exists()
        (decide,) = re.findall(r"To decide \(yes, no, skip\): (.*)", question.stdout)
        folder = shown.partition(" && ")[0]
        decided = await asyncio.to_thread(person.paste, f"{folder} && {decide}")
        assert decided.returncode == 0, decided.stdout + decided.stderr
        assert notes.read_text() == "one"
        assert "added" in await refused(client, "one")
    (undo,) = re.findall(r"to uninstall: (.*)", installed.stdout)
    assert person.paste(undo).returncode == 0
    assert person.cursor.read_text() == before


def command(refusal: str) -> str:
    """Return the command that a refusal prints."""
    (found,) = [line for line in refusal.splitlines() if line.startswith("cd ")]
    return found


@pytest.mark.slow
def test_a_new_settings_file_is_confirmed_from_another_folder(person: Person) -> None:
    start = f"{COMMAND} proxy --allow-writes"
    place = {"PACKETGATE_HOME": "../my data"}
    require("bwrap")  # without a sandbox, nothing needs confirmation
    person.paste(f"{COMMAND} tools", person.project, **place)
    (person.project / "packetgate.toml").write_text("permanent = []\n")
    stopped = person.paste(start, person.project, **place)
    assert stopped.returncode == 2, stopped.stderr
    (confirm,) = re.findall(r"to use it, run `(.*)`, else", stopped.stderr)
    confirmed = person.paste(confirm, PATH=f"{COMMAND.parent}:/usr/bin:/bin")
    assert confirmed.returncode == 0, confirmed.stderr
    assert person.paste(start, person.project, **place).returncode == 0
