"""`packetgate init`: what it finds, asks, writes and leaves alone."""

import asyncio
import json
import socket
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.command_line import CommandLine, Outcome
from support.ollama import Ollama, serve_ollama
from support.scripted_openai import free_port
from support.terminals import ended, terminal

from packetgate.models.discovery import discover, gguf_folders
from packetgate.models.endpoint import HOSTED

SPEED = ("Hi", "one hundred, one hundred and one")
"""Answers to what its speed is measured with."""
SELECTION = json.dumps({"action": "call", "calls": [{"tool": "ai.list", "params": {}}], "complete": True})
REVIEW = json.dumps({"reviews": {"1": {"approved": True, "confidence": 0.9, "reasoning": "fine"}}})
TURN = (SELECTION, REVIEW, "There are plan.txt and todo.txt.")
MODEL = {"models": {"lite": {"model": "ollama:qwen3:4b"}}}
KEPT = 'permanent = ["ai.read"]  # mine\n'


@dataclass
class Person:
    """Somebody's machine: a home folder, Ollama, and the command in a folder of its own."""

    cli: CommandLine
    home: Path
    ollama: Ollama
    variables: dict[str, str] = field(default_factory=dict)

    def init(self, *args: str) -> Outcome:
        return self.cli.run("init", *args, **self.variables)

    @property
    def preferences(self) -> Path:
        return self.cli.folder / "packetgate.toml"

    @property
    def config(self) -> Path:
        return self.cli.folder / "mcp.json"

    def has_client(self, file: str, **servers: object) -> None:
        (path := self.home / file).parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"mcpServers": servers}))


@pytest.fixture
def person(cli: CommandLine, tmp_path: Path) -> Iterator[Person]:
    (home := tmp_path / "person").mkdir()
    with serve_ollama() as ollama:
        ollama.has(qwen3_4b=2_600_000_000, gemma_1b=800_000_000, nomic_latest=300_000_000)
        ollama.embedding = {"nomic:latest"}
        places = {name: str(home / name) for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HF_HOME")}
        no_keys = dict.fromkeys(HOSTED.values(), "")
        yield Person(cli, home, ollama, {"HOME": str(home), "OLLAMA_HOST": ollama.host, **places, **no_keys})


def is_taken(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def toml(path: Path) -> object:
    return tomllib.loads(path.read_text())


def test_yes_takes_the_first_model_and_the_servers_and_asks_once(person: Person) -> None:
    person.has_client(".cursor/mcp.json", clock={"command": "clock"}, off={"command": "x", "disabled": True})
    person.has_client(
        ".codeium/windsurf/mcp_config.json", clock={"command": "other"}, web={"url": "http://127.0.0.1:9"}
    )
    person.ollama.openai.script(*SPEED, *TURN)
    done = person.init("--yes")
    assert done.status == 0, done.err
    assert "ollama:qwen3:4b" in done.out
    assert "2.6 GB" in done.out
    assert "nomic" not in done.out, "a model that only embeds is none to choose"
    assert "tokens per second" in done.out
    assert "There are plan.txt and todo.txt." in done.out
    assert toml(person.preferences) == MODEL
    config = json.loads(person.config.read_text())
    assert config["builtin"] is True, "or the tools that there were before are gone"
    assert {name: entry.get("command") for name, entry in config["mcpServers"].items()} == {
        "clock": "clock",
        "clock-windsurf": "other",
        "web": None,
    }
    assert not [*person.cli.folder.glob("*.before-init*")]
    again = person.init("--yes", "--no-request", "--model", "ollama:qwen3:4b")
    assert "already exists" not in again.err
    assert not [*person.cli.folder.glob("*.before-init*")], "nothing was to be changed"


def test_nobody_to_ask_is_told_and_nothing_written(person: Person) -> None:
    person.has_client(".cursor/mcp.json", clock={"command": "clock"})
    done = person.init()
    assert done.status == 2
    assert "ollama:gemma:1b" in done.out
    assert "cursor" in done.out
    assert "--yes" in done.err
    assert not person.preferences.exists()
    assert not person.config.exists()
    assert not person.ollama.openai.requests


def test_what_is_there_is_changed_only_with_consent_and_kept(person: Person) -> None:
    person.preferences.write_text(KEPT)
    person.config.write_text('{"mcpServers": {"mine": {"command": "mine"}}}')
    person.has_client(".cursor/mcp.json", clock={"command": "clock"}, same={"command": "mine"})
    refused = person.init("--no-request", "--model", "ollama:qwen3:4b")
    assert refused.status == 2
    assert "packetgate.toml already exists: --yes changes it and keeps a copy" in refused.err
    assert person.preferences.read_text() == KEPT
    person.ollama.openai.script(*SPEED)
    assert person.init("--no-request", "--yes").status == 0
    assert person.preferences.read_text().startswith(KEPT)
    assert toml(person.preferences) == {"permanent": ["ai.read"], **MODEL}
    assert person.preferences.with_name("packetgate.toml.before-init").read_text() == KEPT
    assert [*json.loads(person.config.read_text())["mcpServers"]] == ["mine", "clock"]
    kept = person.config.with_name("mcp.json.before-init")
    assert [*json.loads(kept.read_text())["mcpServers"]] == ["mine"]


def test_a_model_that_does_not_answer_is_passed_over(person: Person) -> None:
    person.ollama.openai.script(*SPEED)
    person.ollama.sizes = {"qwen3:4b": 1, "gemma:1b": 2}
    person.ollama.openai.models = ["qwen3:4b"]  # of which only one is listed to those who ask in OpenAI's protocol
    done = person.init("--no-request", "--model", "ollama:gemma:1b")
    assert done.status == 2
    assert "write ollama:qwen3:4b" in done.err
    assert not person.preferences.exists()


def test_keys_are_named_by_their_variables_and_sent_nowhere(person: Person) -> None:
    """A key in another client's settings goes into a file that is its owner's alone, and that is told."""
    person.has_client(".cursor/mcp.json", clock={"command": "clock", "env": {"CLOCK_TOKEN": "t-123"}})
    person.variables |= {"OPENAI_API_KEY": "sk-secret", "GROQ_API_KEY": "gsk-secret"}
    person.ollama.openai.script(*SPEED)
    done = person.init("--no-request", "--yes")
    assert "openai:NAME" in done.out
    assert "GROQ_API_KEY" in done.out
    assert "mcp.json contains keys" in done.out
    assert person.config.stat().st_mode & 0o077 == 0
    sent = [value for one in (*person.ollama.headers, *person.ollama.openai.headers) for value in one.values()]
    told = [done.out, done.err, person.preferences.read_text(), person.config.read_text(), *sent]
    assert not any("secret" in text for text in told)

    hosted = person.init("--no-request", "--yes", "--no-servers", "--model", "groq:some-model")
    assert hosted.status == 0, hosted.err
    assert toml(person.preferences) == {"models": {"lite": {"model": "groq:some-model"}}}


@pytest.mark.skipif(any(map(is_taken, (1234, 8080, 8000))), reason="a server of models may run on this machine")
def test_nothing_found_says_what_to_do_and_answers_all_the_same(person: Person) -> None:
    person.variables["OLLAMA_HOST"] = f"127.0.0.1:{free_port()}"
    done = person.init("--yes")
    assert done.status == 0, done.err
    assert "No model was found on this machine. Start Ollama" in done.out
    assert "plan.txt" in done.out
    assert not person.preferences.exists()
    assert not person.config.exists()


def test_somebody_at_a_terminal_is_asked(person: Person) -> None:
    person.has_client(".cursor/mcp.json", clock={"command": "clock"})
    person.preferences.write_text(KEPT)
    person.ollama.openai.script(*SPEED, *SPEED)
    with terminal(person.cli, "init", "--no-request", **person.variables) as child:
        for says, answer in (
            ("Which model", "qwen3"),
            ("write `openai:qwen3`, or `ollama:qwen3`", ""),
            ("Which model", "9"),
            ("there is no number 9", ""),
            ("Which model", "1"),
            ("Use it", "n"),
            ("Which model", "2"),
            ("Use it", ""),
            ("packetgate.toml already exists", "n"),
            ("Take over 1 server", "y"),
        ):
            child.expect_exact(says)
            if says.startswith(("Which", "Use", "Take", "packetgate")):
                child.sendline(answer)
        child.expect_exact("mcp.json: added clock")
        assert ended(child) == 0
    assert person.preferences.read_text() == KEPT
    assert person.config.exists()


def test_files_that_can_chat_are_found_once_by_their_names(
    tiny_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OLLAMA_HOST", "http://gpu.invalid")
    hub = tmp_path / "hub" / "models--a--b"
    (snapshot := hub / "snapshots" / "1").mkdir(parents=True)
    (blobs := hub / "blobs").mkdir()
    (blobs / "abc").write_bytes(tiny_gguf.read_bytes())
    (snapshot / "chat.gguf").symlink_to(blobs / "abc")
    (snapshot / "again.gguf").symlink_to(blobs / "abc")
    for part in (1, 2):
        (tmp_path / f"large-0000{part}-of-00002.gguf").write_bytes(tiny_gguf.read_bytes() + b"\0" * part)
    (tmp_path / "mmproj-a.gguf").write_bytes(b"GGUF" + b"\0" * 100)
    (tmp_path / "text.gguf").write_text("version https://git-lfs.github.com/spec/v1")
    (tmp_path / "empty.gguf").touch()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    assert tmp_path / "hub" in gguf_folders()
    found = asyncio.run(discover())
    files = {Path(one.model.removeprefix("llamacpp:")).name: one.size for one in found.offers if "GGUF" in one.where}
    size = tiny_gguf.stat().st_size
    assert files == {"again.gguf": size, "large-00001-of-00002.gguf": 2 * size + 3}
    assert any("gpu.invalid" in note and "was not asked" in note for note in found.notes)


def test_a_file_is_loaded_measured_and_asked(person: Person, tiny_gguf: Path) -> None:
    done = person.init("--yes", "--no-servers", "--model", f"llamacpp:{tiny_gguf}?n_ctx=512")
    assert done.status in {0, 3}, done.err
    assert "tokens per second" in done.out
    assert toml(person.preferences) == {"models": {"lite": {"model": f"llamacpp:{tiny_gguf}?n_ctx=512"}}}
