"""Provide everything that a client's run needs: a folder of files, the scripted model, and Packetgate's commands."""

import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clients.model import ScriptedModel
from benchmarks.environment import make_environment
from packetgate.state.errors import InputError

COMMAND = str(Path(sys.executable).with_name("packetgate"))
FILES = {"plan.txt": "Buy milk\nCall Ann\n", "later.txt": "Water the plants\n"}
READY_S = 180


class UnavailableError(InputError):
    """A client cannot be installed on this machine."""


@dataclass(frozen=True)
class Place:
    """The folders and addresses that a client's driver gets."""

    folder: Path
    """An empty folder for the client's own files."""
    work: Path
    """The working folder of Packetgate's tools; it contains FILES."""
    installed: Path
    """The folder of the installed client, which a later run may use again."""
    model: ScriptedModel

    @contextmanager
    def packetgate(self, *words: str, ready: str) -> Iterator[str]:
        """Run a command of Packetgate until the context ends, and yield the match of the pattern `ready` in its log.

        Raises:
            InputError: the command exited, or was not ready in time.
        """
        variables = {
            "PACKETGATE_HOME": str(self.folder / "home"),
            "PACKETGATE_LITE": "reflex",
            "PACKETGATE_PRIME": "openai:scripted",
            "PACKETGATE_PRIME_BASE_URL": self.model.base_url,
        }
        log = self.folder / "packetgate.log"
        with running([COMMAND, *words], self.work, variables, log=log, ready=ready) as found:
            yield found

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Run `packetgate serve` with writes enabled, and yield its base URL."""
        with self.packetgate("serve", "--port", "0", "--allow-writes", ready=r"http://\S+/v1") as url:
            yield url

    def sessions(self) -> int:
        """Return the number of stored conversations: a background prompt must not start one."""
        with closing(sqlite3.connect(f"file:{self.folder / 'home' / 'packetgate.db'}?mode=ro", uri=True)) as database:
            return int(database.execute("SELECT count(DISTINCT thread_id) FROM checkpoints").fetchone()[0])


@contextmanager
def running(
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    *,
    log: Path,
    ready: str,
    within: float = READY_S,
) -> Iterator[str]:
    """Run a server until the context ends, and yield the match of the pattern `ready` in its log.

    Raises:
        InputError: the server exited, or was not ready in time.
    """
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    try:
        until = time.monotonic() + within
        while not (found := re.search(ready, log.read_text(errors="replace"))):
            if process.poll() is not None or time.monotonic() > until:
                raise InputError(f"{Path(command[0]).name} is not ready: {log.read_text(errors='replace')[-400:]}")
            time.sleep(0.1)
        yield found[0]
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(command: Sequence[str], folder: Path, variables: Mapping[str, str], within: float = 180) -> str:
    """Run a program until it exits, and return its output.

    Raises:
        InputError: the program failed, or took longer than `within` seconds.
    """
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{Path(command[0]).name} took longer than {within:.0f} s") from error
    if done.returncode:
        raise InputError(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def from_npm(package: str, folder: Path) -> str:
    """Install an npm package into a folder unless it is installed, and return its version.

    Raises:
        UnavailableError: npm is missing or fails.
    """
    manifest = folder / "node_modules" / package / "package.json"
    if not manifest.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise UnavailableError("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        try:
            run([npm, "install", "--no-audit", "--no-fund", package], folder, {}, within=600)
        except InputError as error:
            raise UnavailableError(str(error)) from error
    found: dict[str, Any] = json.loads(manifest.read_text())
    return str(found["version"])


def from_pypi(package: str, folder: Path, *install: str) -> str:
    """Install a PyPI package into its own environment unless it is installed, and return its version.

    Raises:
        UnavailableError: the package cannot be installed.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        try:
            make_environment(folder, package, *(install or (package,)))
        except InputError as error:
            raise UnavailableError(str(error)) from error
    asked = f"from importlib.metadata import version; print(version({package!r}))"
    return run([str(python), "-c", asked], folder, {}).strip()
