"""A new user who follows the pages: saves files, runs commands at a terminal, and answers prompts."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pexpect
from support.command_line import CommandLine
from support.fork_server import Forked
from support.hub import serve_hub
from support.pages import ROOT, Step
from support.scripted_openai import ScriptedOpenAI, free_port, serve_scripted_openai
from support.terminals import KEYS, printed, terminal

QUESTION = "[y]es, [n]o, [s]kip, [e]dit, or say something else:"
CHAT = "you>"
WORKS = "[\u2800-\u28ff]"
"""Matches a frame of the spinner that a running turn shows."""
PROMPTS = (f"trust, {QUESTION}", QUESTION, CHAT, "[y/N]:")
WAITS = 3
"""Exit status of a command that waits for an answer."""

PULLED = "Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q5_K_M.gguf"
SECRETS = dict.fromkeys(("ANN_TOKEN", "IDE_TOKEN", "TRACKER_TOKEN", "TRACKER_SECRET"), "0123456789abcdef" * 2)
"""Variables that the settings of pages name."""
NUMBERS = re.compile(r"\b(?:[0-9a-f]{8}(?:[0-9a-f]{4})*|\d[\d:.]*)\b")
"""Matches ids, times and measured values, which differ between runs."""


@dataclass
class Reader:
    """A user who follows a page in `cli.folder`."""

    cli: CommandLine
    variables: dict[str, str]
    names: dict[str, str]
    """Replacements for texts of the page, such as the path of a model."""
    is_first: bool = False
    transcript: list[str] = field(default_factory=list)
    server: Forked | None = None

    def do(self, step: Step) -> None:
        """Save a file, or run a command and compare its output."""
        text = step.text
        for written, real in self.names.items():
            text = text.replace(written, real)
        if step.file:
            path = self.cli.folder / step.file
            earlier = path.read_text() if path.suffix == ".toml" and path.exists() else ""
            path.write_text(f"{earlier}\n{text}" if text.startswith("[") else f"{text}\n{earlier}")
            return
        self.transcript.append(f"$ {text}")
        began = time.monotonic()
        words = shlex.split(text, comments=True)
        while "=" in words[0] or words[0] == "export":
            self.variables |= dict([words.pop(0).split("=", 1)] if "=" in words[0] else [])
            words = words[1:] if words[:1] == ["export"] else words
            if not words:
                return
        if words[0] != "packetgate":
            out, status = self._in_shell(text)
        elif words[1] == "serve" or "--http" in words:
            self._start(words[1:])
            return
        elif step.is_inline or words[1:] == ["proxy"]:  # needs no input
            done = self.cli.run(*words[1:], **self.variables)
            out, status = done.out + done.err, done.status
        else:
            out, status = self._at_terminal(words[1:], step.shown)
        self.transcript.append(f"{out}[{time.monotonic() - began:.1f} s]\n")
        is_error = any(line.startswith("packetgate: ") for line in step.shown)
        assert is_error or status in ({0, WAITS} if step.is_inline or "[y]es" in out else {0}), "\n".join(
            self.transcript
        )
        if words[0] != "packetgate" or step.is_inline:
            self._compare(step.shown, out)

    def close(self) -> None:
        """Stop the server that a command started."""
        if self.server:
            os.kill(self.server.pid, signal.SIGTERM)
            assert self.server.wait(30) in {0, 130, 143, -signal.SIGTERM}
            self.server = None

    def _in_shell(self, command: str) -> tuple[str, int]:
        is_make = command.startswith("make ")
        environment = {**self.cli.environment, **self.variables, **({"TESTS": "tests/prompts"} if is_make else {})}
        command += " WORKERS=0" if is_make else ""
        folder = ROOT if is_make else self.cli.folder
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=250, check=False
        )
        return done.stdout + done.stderr, done.returncode

    def _at_terminal(self, args: list[str], shown: Sequence[str]) -> tuple[str, int]:
        """Run a command with the answers that the page shows after its prompts; compare each part of its output."""
        parts, out = [list[str]()], ""
        answers: list[tuple[str, str]] = []
        for line in shown:
            if prompt := next((one for one in PROMPTS if one in line), ""):
                before, _, answer = line.partition(prompt)
                answers.append((prompt, answer))
                parts[-1] += [before] if before else []
                parts.append([])
            else:
                parts[-1].append(line)
        with terminal(self.cli, *args, is_first=self.is_first, **self.variables) as child:
            for (prompt, answer), part in zip(answers, parts, strict=False):
                child.expect_exact(prompt)
                self._compare(part, printed(child))
                out += printed(child) + prompt
                child.sendline(answer.strip())
                if prompt == CHAT and answer.strip() != "/quit":
                    child.expect(WORKS)  # before that, the prompt is drawn again
            if args[0] == "chat" and not answers:
                child.expect_exact(CHAT)
                child.send(KEYS["Ctrl-D"])
            child.expect(pexpect.EOF)
            self._compare(parts[-1], printed(child))
            return out + printed(child), child.wait()

    def _start(self, args: list[str]) -> None:
        self.close()
        port = self.names.setdefault("2026", str(free_port()))
        nowhere = os.open(os.devnull, os.O_RDWR)
        self.server = self.cli.fork([*args, "--port", port], (nowhere,) * 3, **self.variables)
        os.close(nowhere)
        deadline = time.monotonic() + 60
        while not answers(f"http://127.0.0.1:{port}/"):
            assert time.monotonic() < deadline, f"{args} does not answer"
            time.sleep(0.1)

    def _compare(self, shown: Sequence[str], out: str) -> None:
        """Compare lines in order, without gaps except where the page shows `...`."""
        lines = [_plain(line) for line in out.splitlines() if _plain(line)]
        for part in "\n".join(filter(None, map(_plain, shown))).split("..."):
            wanted = part.strip("\n").splitlines()
            at = next((n for n in range(len(lines) + 1) if lines[n : n + len(wanted)] == wanted), None)
            assert at is not None, "\n".join(
                [*self.transcript, "--- shown on the page:", *wanted, "--- printed:", *lines]
            )
            lines = lines[at + len(wanted) :]


def answers(url: str) -> bool:
    """Return whether a server answers at an address."""
    try:
        return httpx.get(url, timeout=5).status_code < 500
    except httpx.TransportError:
        return False


def _plain(line: str) -> str:
    """Return a line without measured values and surrounding white space."""
    return " ".join(NUMBERS.sub("#", line).split())


@contextmanager
def new_reader(scratch: Path, tiny_gguf: Path, *, is_first: bool = False) -> Iterator[tuple[Reader, ScriptedOpenAI]]:
    """Yield a reader with an empty folder and home, and the server that stands in for Ollama and OpenAI.

    Another server stands in for the hub of models, with `PULLED`.
    """
    for folder in (scratch / "work", scratch / "person"):
        folder.mkdir()
    with serve_scripted_openai() as model, serve_hub(tiny_gguf.read_bytes()) as hub:
        model.models, model.otherwise, hub.name = ["qwen3:4b", "qwen3:14b", "gpt-5-mini"], "I do not know.", PULLED
        variables = {
            "HOME": str(scratch / "person"),
            "HF_ENDPOINT": hub.endpoint,
            "OLLAMA_HOST": model.base_url.removesuffix("/v1"),
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "x",
            **SECRETS,
        }
        names = {"/models/qwen3-4b.gguf": str(tiny_gguf), "http://127.0.0.1:11434/v1": model.base_url}
        reader = Reader(CommandLine(scratch / "work", scratch / "home"), variables, names, is_first)
        try:
            yield reader, model
        finally:
            reader.close()
