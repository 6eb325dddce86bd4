"""Confine programs with bubblewrap, if it works on this machine."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import anyio

from packetgate.tools.builtin import launcher
from packetgate.tools.builtin.files import ToolFailure

HAS_LAUNCHER = sys.platform == "linux" and bool(sys.executable)
"""Whether a launcher kills everything that a program started; elsewhere only its process group is killed."""

SandboxMode = Literal["auto", "require", "off"]

CONFINED = (
    "bubblewrap: the program can write only below the working folder, and can read only system files outside it; the "
    "program cannot see other processes and their environments, and all its processes end with it"
)
UNCONFINED = "none: the program can access the files, network and processes that you can; all its processes end with it"

_SYSTEM = "/usr /bin /sbin /lib /lib32 /lib64 /etc /opt /nix /snap /sys".split()
_NEXT_TO_BIN = "lib lib64 libexec include pyvenv.cfg".split()
_CONFIGURATION = (".gitconfig", ".config/git")
"""Git's configuration, relative to the home folder. Git fails if it cannot read these files."""
_PROBE_S = 10.0


@dataclass(frozen=True)
class SandboxSettings:
    """The user's settings of the sandbox."""

    mode: SandboxMode = "auto"
    network: bool = False
    reads: tuple[str, ...] = ()
    """Additional folders and files that programs may read."""
    writes: tuple[str, ...] = ()
    """Additional folders and files that programs may change."""


class Sandbox:
    """Confines programs to a folder, if bubblewrap works on this machine."""

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self.settings = settings or SandboxSettings()
        self._works: bool | None = None

    async def confines(self, folder: Path) -> bool:
        """Return whether the sandbox confines programs; bubblewrap is tried only once.

        Raise `ToolFailure` if it does not, and the settings require a sandbox.
        """
        if self._works is None:
            self._works = await asyncio.to_thread(self._bubblewrap_works, folder)
        if self.settings.mode == "require" and not self._works:
            raise ToolFailure(
                "a sandbox is required (sandbox = require), but bubblewrap does not work on this machine: install "
                "bubblewrap, or set PACKETGATE_SANDBOX=auto"
            )
        return self._works

    async def description(self, folder: Path) -> str:
        """Return a description of the confinement. Raise `ToolFailure` as `confines` does."""
        if not await self.confines(folder):
            return UNCONFINED
        return CONFINED if self.settings.network else f"{CONFINED}; no network"

    @asynccontextmanager
    async def prepare(
        self, argv: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> AsyncIterator[tuple[dict[str, str], list[str]]]:
        """Yield the environment for a program, and the command line to prepend; empty without a sandbox.

        A sandboxed program has its own temporary folder, which is removed afterwards. Raise `ToolFailure` as `confines`
        does.
        """
        if not await self.confines(folder):
            if HAS_LAUNCHER:
                await anyio.to_thread.run_sync(_hide_environment)
            yield {**environment}, []
            return
        temporary = await anyio.to_thread.run_sync(partial(tempfile.mkdtemp, prefix="packetgate-"))
        try:
            wrapper = await anyio.to_thread.run_sync(self._wrapper, argv, folder, environment, temporary)
            yield {**environment, "TMPDIR": temporary}, wrapper
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(partial(shutil.rmtree, temporary, ignore_errors=True))

    def _bubblewrap_works(self, folder: Path) -> bool:
        if not HAS_LAUNCHER or self.settings.mode == "off" or not shutil.which("bwrap"):
            return False
        environment = {"PATH": os.defpath}
        with tempfile.TemporaryDirectory(prefix="packetgate-") as temporary:
            wrapper = self._wrapper(["true"], folder, environment, temporary)
            command = launcher.command_line(launcher.Plan(wrapper=wrapper, report_fd=1), ["true"])
            try:
                trial = subprocess.run(  # noqa: S603 - bubblewrap runs the launcher, and that runs `true`
                    command, cwd=folder, env=environment, timeout=_PROBE_S, capture_output=True, check=False
                )
            except (OSError, subprocess.TimeoutExpired):
                return False
        return trial.stdout == b'{"status": 0}\n'

    def _wrapper(self, argv: Sequence[str], folder: Path, environment: Mapping[str, str], temporary: str) -> list[str]:
        """Return the command line to prepend to a program's, so that bubblewrap confines it."""
        reads = [*_SYSTEM, *_needed_by_programs(argv[0], environment), launcher.__file__]
        reads += map(os.path.expanduser, self.settings.reads)
        writes = [str(folder), temporary, *map(os.path.expanduser, self.settings.writes)]
        return [
            shutil.which("bwrap") or "bwrap",
            *"--die-with-parent --unshare-user --unshare-pid --unshare-ipc --unshare-uts --cap-drop ALL".split(),
            *(() if self.settings.network else ("--unshare-net",)),
            *"--tmpfs /tmp --proc /proc --dev /dev".split(),
            *(part for path in reads for part in ("--ro-bind-try", path, path)),
            *(part for path in writes for part in ("--bind-try", path, path)),
            "--",
        ]


def _needed_by_programs(program: str, environment: Mapping[str, str]) -> list[str]:
    path = environment.get("PATH", os.defpath)
    folders = [Path(sys.prefix, "bin"), Path(sys.base_prefix, "bin"), *map(Path, path.split(os.pathsep))]
    if program_path := shutil.which(program, path=path):
        folders += [Path(program_path).parent, Path(program_path).resolve().parent]
    home = Path(environment.get("HOME") or Path.home())
    needed = [home / name for name in _CONFIGURATION]
    for folder in folders:
        if folder.is_absolute() and not home.is_relative_to(folder):
            siblings = _NEXT_TO_BIN if folder.name in {"bin", "sbin"} else []
            needed += [folder, *(folder.parent / name for name in siblings)]
    outside = (path for path in needed if not any(path.is_relative_to(folder) for folder in _SYSTEM))
    return list(dict.fromkeys(str(path) for path in outside if path.exists()))


def _hide_environment() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
