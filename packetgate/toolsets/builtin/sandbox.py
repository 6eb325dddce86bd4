"""Confine programs with bubblewrap, if it works on this machine."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import anyio

from packetgate.toolsets.builtin import launcher
from packetgate.toolsets.builtin.confinement import Confinement, Wrapper, in_thread
from packetgate.toolsets.builtin.files import ToolFailure
from packetgate.toolsets.builtin.limits import MAX_COMMAND_GB

HAS_LAUNCHER = sys.platform == "linux" and bool(sys.executable)
"""Whether a launcher kills everything that a program started; elsewhere only its process group is killed."""

SandboxMode = Literal["auto", "require", "off"]

CONFINED = (
    "bubblewrap: the program can write only below the working folder, and can read only system files outside it; the "
    "program cannot see other processes and their environments, and all its processes end with it"
)
UNCONFINED = "none: the program can access the files, network and processes that you can; all its processes end with it"

_PROBE_S = 10.0


@dataclass(frozen=True)
class SandboxSettings:
    """The user's settings of the sandbox."""

    mode: SandboxMode = "auto"
    network: bool = False
    memory_gb: float = MAX_COMMAND_GB
    """Memory that a command may use."""
    reads: tuple[str, ...] = ()
    """Additional folders and files that programs may read."""
    writes: tuple[str, ...] = ()
    """Additional folders and files that programs may change."""
    data: Path | None = None
    """Packetgate's data folder, which no program sees."""
    settings_files: tuple[Path, ...] = ()
    """The settings files in use, which no program may change."""


class Sandbox:
    """Confines programs to a folder, if bubblewrap works on this machine."""

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self.settings = settings or SandboxSettings()

    async def confines(self) -> bool:
        """Return whether the sandbox confines programs.

        Raise `ToolFailure` if it does not, and the settings require a sandbox.
        """
        works = self.settings.mode != "off" and await asyncio.to_thread(bubblewrap_works)
        if self.settings.mode == "require" and not works:
            raise ToolFailure(
                "a sandbox is required (sandbox = require), but bubblewrap does not work on this machine: install "
                "bubblewrap, or set PACKETGATE_SANDBOX=auto"
            )
        return works

    async def description(self) -> str:
        """Return a description of the confinement. Raise `ToolFailure` as `confines` does."""
        if not await self.confines():
            return UNCONFINED
        return CONFINED if self.settings.network else f"{CONFINED}; no network"

    @asynccontextmanager
    async def prepare(
        self, argv: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> AsyncIterator[tuple[dict[str, str], Wrapper | None]]:
        """Yield the environment for a program, and its wrapper; None without a sandbox.

        A sandboxed program has its own temporary folder, which is removed afterwards. Raise `ToolFailure` as `confines`
        does.
        """
        if not await self.confines():
            if HAS_LAUNCHER:
                await anyio.to_thread.run_sync(_hide_environment)
            yield {**environment}, None
            return
        async with in_thread(self._prepared(argv[0], folder, environment)) as prepared:
            yield prepared

    @contextmanager
    def _prepared(
        self, program: str, folder: Path, environment: Mapping[str, str]
    ) -> Iterator[tuple[dict[str, str], Wrapper]]:
        temporary = tempfile.mkdtemp(prefix="packetgate-")
        try:
            with self._confinement(folder, temporary).wrapper(program, environment) as wrapper:
                yield {**environment, "TMPDIR": temporary}, wrapper
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _confinement(self, folder: Path, temporary: str) -> Confinement:
        return Confinement(
            folder,
            reads=(Path(launcher.__file__), *map(Path, map(os.path.expanduser, self.settings.reads))),
            writes=(folder, Path(temporary), *map(Path, map(os.path.expanduser, self.settings.writes))),
            network=self.settings.network,
            data=self.settings.data,
            settings_files=self.settings.settings_files,
            temporary=Path(temporary),
        )


def bubblewrap_works() -> bool:
    """Return whether bubblewrap is installed and works; it is tried only once. Blocking."""
    return HAS_LAUNCHER and _works(shutil.which("bwrap"))


@cache
def _works(bubblewrap: str | None) -> bool:
    if bubblewrap is None:
        return False
    environment = {"PATH": os.defpath}
    confinement = Confinement(Path("/"), reads=(Path(launcher.__file__),))
    with confinement.wrapper("true", environment) as wrapper:
        command = launcher.command_line(launcher.Plan(wrapper=wrapper.command, report_fd=1, max_tasks=0), ["true"])
        try:
            trial = subprocess.run(  # noqa: S603 - bubblewrap runs the launcher, and that runs `true`
                command, env=environment, timeout=_PROBE_S, capture_output=True, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return trial.stdout == b'{"status": 0}\n'


def _hide_environment() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
