"""`packetgate init`: discovery, questions and written files."""

import asyncio
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.command_line import CommandLine, Outcome
from support.hub import left_in, serve_hub
from support.scripted_openai import ScriptedOpenAI, serve_scripted_openai
from support.terminals import ended, printed, terminal

from packetgate.connectors.terminal.turns import INIT_OFFER
from packetgate.models.kinds import discover
from packetgate.models.llama.kind import gguf_folders
from packetgate.models.openai.servers import PROVIDER_KEYS

SPEED = ("Hi", "one hundred, one hundred and one")
"""The answers to the requests that measure the model's speed."""
MODEL = {"models": {"lite": {"model": "ollama:qwen3:4b"}}}
OWN = 'permanent = ["ai.read"]  # mine\n'


@dataclass
class Person:
    """A user's machine: a home folder, Ollama, and the command in a separate folder."""

    cli: CommandLine
    home: Path
    ollama: ScriptedOpenAI
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
    with serve_scripted_openai() as ollama:
        ollama.models = ["qwen3:4b", "gemma:1b", "nomic-embed-text:latest"]
        places = {name: str(home / name) for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HF_HOME")}
        no_keys = dict.fromkeys(PROVIDER_KEYS.values(), "")
        yield Person(
            cli,
            home,
            ollama,
            {"HOME": str(home), "OLLAMA_HOST": ollama.base_url.removesuffix("/v1"), **places, **no_keys},
        )


def toml(path: Path) -> object:
    return tomllib.loads(path.read_text())


def test_yes_takes_the_first_model_and_all_servers(person: Person) -> None:
    person.has_client(".cursor/mcp.json", clock={"command": "clock"}, off={"command": "x", "disabled": True})
    person.has_client(".claude.json", clock={"command": "other"}, odd=None, web={"url": "http://127.0.0.1:9"})
    person.ollama.script(*SPEED)
    done = person.init("--yes")
    assert done.status == 0, done.err
    assert "nomic" not in done.out, "a model that only embeds cannot be chosen"
    assert "tokens per second" in done.out
    assert "'odd'" in done.out
    assert toml(person.preferences) == MODEL
    config = json.loads(person.config.read_text())
    assert config["builtin"] is True, "otherwise the built-in tools disappear"
    commands = {name: entry.get("command") for name, entry in config["mcpServers"].items()}
    assert commands == {"clock": "other", "web": None, "clock-cursor": "clock"}
    assert person.config.stat().st_mode & 0o077 == 0


def test_without_a_terminal_nothing_is_written(person: Person) -> None:
    person.has_client(".cursor/mcp.json", clock={"command": "clock"})
    done = person.init()
    assert done.status == 2
    assert "ollama:gemma:1b" in done.out
    assert "clock" in done.out
    assert "--yes" in done.err
    assert not person.preferences.exists()
    assert not person.config.exists()
    assert not person.ollama.requests


def test_existing_files_keep_their_content(person: Person) -> None:
    person.preferences.write_text(OWN)
    person.config.write_text('{"mcpServers": {"mine": {"command": "mine"}}}')
    person.has_client(".cursor/mcp.json", clock={"command": "clock"})
    person.ollama.script(*SPEED, *SPEED)
    assert person.init("--yes").status == 0
    assert person.preferences.read_text().startswith(OWN)
    assert toml(person.preferences) == {"permanent": ["ai.read"], **MODEL}
    assert [*json.loads(person.config.read_text())["mcpServers"]] == ["mine"]
    before = person.preferences.read_text()
    done = person.init("--yes", "--model", "groq:some-model")
    assert 'model = "groq:some-model"' in done.out
    assert person.preferences.read_text() == before


def test_a_model_that_does_not_answer_is_an_error(person: Person) -> None:
    person.ollama.models = ["qwen3:4b"]
    done = person.init("--model", "ollama:gemma:1b")
    assert done.status == 2
    assert "ollama:qwen3:4b" in done.err
    assert not person.preferences.exists()


def test_keys_are_named_by_their_variables_and_sent_nowhere(person: Person) -> None:
    person.variables |= {"OPENAI_API_KEY": "sk-secret", "GROQ_API_KEY": "gsk-secret"}
    person.ollama.script(*SPEED)
    done = person.init("--yes")
    assert "openai:NAME" in done.out
    assert "GROQ_API_KEY" in done.out
    sent = [value for one in person.ollama.headers for value in one.values()]
    assert not any("secret" in text for text in [done.out, done.err, person.preferences.read_text(), *sent])


def test_at_a_terminal_the_user_is_asked(person: Person) -> None:
    person.has_client(".cursor/mcp.json", clock={"command": "clock"})
    person.ollama.script(*SPEED, *SPEED)
    with terminal(person.cli, "init", **person.variables) as child:
        for question, reply, shown in (
            ("Which model", "qwen3", "`ollama:qwen3`"),
            ("Which model", "9", "the last number is"),
            ("Which model", "1", "tokens per second"),
            ("Use it", "n", ""),
            ("Which model", "2", "tokens per second"),
            ("Use it", "", "packetgate.toml"),
            ("Copy 1 servers", "y", "mcp.json: added clock"),
        ):
            child.expect_exact(question)
            child.sendline(reply)
            child.expect_exact(shown)
        assert ended(child) == 0
    assert person.preferences.exists()


@pytest.mark.parametrize("names_it", [True, False])
def test_where_nothing_is_found_a_model_is_downloaded_after_a_yes(
    person: Person, tiny_gguf: Path, names_it: bool
) -> None:
    person.ollama.models = []
    assert "packetgate model pull" in person.init("--yes").out
    with (
        serve_hub(tiny_gguf.read_bytes()) as hub,
        terminal(person.cli, "init", HF_ENDPOINT=hub.endpoint, **person.variables) as child,
    ):
        child.expect_exact("qwen3-0.6b")
        child.expect_exact("or none [none]:")
        child.sendline(hub.name if names_it else "")
        assert ended(child) == 0
        assert bool(hub.requests) is names_it
    assert person.preferences.exists() is names_it
    assert left_in(person.cli.home) == (["model.gguf"] if names_it else [])


def test_init_is_offered_once_at_a_terminal(person: Person) -> None:
    person.ollama.script(*SPEED)
    piped = person.cli.run("ask", "Read plan.txt", **person.variables)
    as_json = ("ask", "--json", "Read plan.txt")
    with terminal(person.cli, *as_json, is_first=True, **person.variables) as child:
        assert ended(child) == 0
        assert INIT_OFFER not in printed(child) + piped.out + piped.err
    for command, reply in ((("ask", "Read plan.txt"), "n"), (("ask", "Read plan.txt"), None)):
        with terminal(person.cli, *command, is_first=True, **person.variables) as child:
            if reply:
                child.expect_exact(INIT_OFFER)
                child.sendline(reply)
            assert ended(child) == 0
            assert "The gate opens at seven." in printed(child)
            assert reply or INIT_OFFER not in printed(child)


def test_the_offered_init_sets_the_model_of_the_same_chat(person: Person) -> None:
    person.ollama.script(*SPEED)
    with terminal(person.cli, "chat", is_first=True, **person.variables) as child:
        for question, reply in ((INIT_OFFER, "y"), ("Which model", "1"), ("Use it", "y"), ("you> ", "/quit")):
            child.expect_exact(question)
            child.sendline(reply)
        assert ended(child) == 0
    assert toml(person.preferences) == MODEL


@pytest.mark.parametrize(("reply", "reviews"), [("y", True), ("", False)])
def test_a_decision_model_is_offered_for_reviews(
    person: Person, scripted_openai: ScriptedOpenAI, reply: str, reviews: bool
) -> None:
    scripted_openai.models = ["julia-1"]
    answers = {"wet": {"type": "noul", "noul": 0.97}}
    scripted_openai.script(json.dumps({"model": "julia-1", "answers": answers, "usage": {"input_tokens": 9}}))
    person.ollama.script(*SPEED)
    person.variables["PACKETGATE_PRIME_BASE_URL"] = scripted_openai.base_url
    with terminal(person.cli, "init", **person.variables) as child:
        for question, answer in (("Which model", "1"), ("Use it", "y"), ("systemone:julia-1 review calls", reply)):
            child.expect_exact(question)
            child.sendline(answer)
        assert ended(child) == 0
    prime = {"prime": {"model": "systemone:julia-1"}} if reviews else {}
    assert toml(person.preferences) == {"models": {**MODEL["models"], **prime}}


def test_chat_models_are_found_once(tiny_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert any("gpu.invalid" in note for note in found.notes)
