"""What keeps a program of `ai.execute` from the rest of the machine: the best of what works here.

The ladder: bubblewrap where it is installed; else namespaces of our own, and Landlock in them; else one of the two;
else nothing but a launcher that ends what the program started.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import anyio

from packetgate.tools.builtin import launcher
from packetgate.tools.builtin.failures import ToolFailure
from packetgate.tools.builtin.launcher import Plan
from packetgate.tools.builtin.process import run_program

Mode = Literal["auto", "require", "off"]

_SYSTEM = (
    "/usr /bin /sbin /lib /lib32 /lib64 /etc /opt /nix /snap /proc /sys /dev/zero /dev/full /dev/random /dev/urandom"
)
_DEVICES = "/dev/null /dev/tty /dev/ptmx /dev/pts /dev/shm /proc/self"
_BESIDE_BIN = "lib lib64 libexec include pyvenv.cfg"
_CONFIGURATION = ".gitconfig .config/git"
"""Below the home folder: git refuses to work where it may not read its own."""
_PROBE_S = 10.0


@dataclass(frozen=True)
class Rung:
    """One step of the ladder."""

    name: str
    keeps: str
    """What it keeps a program from, in words; told to users."""
    bubblewrap: bool = False
    namespaces: bool = False
    landlock: bool = False

    @property
    def keeps_files(self) -> bool:
        """Whether files outside are out of reach: what `require` asks for."""
        return self.bubblewrap or self.landlock

    @property
    def said(self) -> str:
        """Name and effect in one sentence."""
        return f"{self.name}: {self.keeps}"


_FILES = "writes stay below the working folder, and of files outside only the system's can be read"
_PROCESSES = "other processes and their environments cannot be seen, and all it starts ends with it"
RUNGS = (
    Rung("bubblewrap", f"{_FILES}; {_PROCESSES}", bubblewrap=True),
    Rung("namespaces and Landlock", f"{_FILES}; {_PROCESSES}", namespaces=True, landlock=True),
    Rung(
        "Landlock",
        f"{_FILES}; environments of other processes cannot be read, and all it starts ends with it",
        landlock=True,
    ),
    Rung("namespaces", f"{_PROCESSES}; files are open to it as to you", namespaces=True),
)
NONE = Rung("none", "all it starts ends with it; files, network and other processes are open to it as to you")


@dataclass(frozen=True)
class SandboxSettings:
    """What the user wants."""

    mode: Mode = "auto"
    network: bool = False
    reads: tuple[str, ...] = ()
    """Folders and files outside the working folder that programs may read as well."""
    writes: tuple[str, ...] = ()


class Sandbox:
    """Starts programs in a folder, in the best rung that was found to work."""

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self.settings = settings or SandboxSettings()
        self._rung: Rung | None = None
        self._bwrap = ""
        """Where bubblewrap is."""

    async def rung(self, folder: Path) -> Rung:
        """Return the best rung that works here: each is tried, once.

        Raises:
            ToolFailure: none keeps files, and one that does is required.
        """
        if self._rung is None:
            self._rung = await self._found(folder)
        if self.settings.mode == "require" and not self._rung.keeps_files:
            raise ToolFailure(
                f"a sandbox is required (sandbox = require) and this machine offers {self._rung.name}: install "
                "bubblewrap, use a kernel with Landlock, or set PACKETGATE_SANDBOX=auto"
            )
        return self._rung

    async def said(self, folder: Path) -> str:
        """Return in words which sandbox there is, and what it keeps a program from.

        Raises:
            ToolFailure: as `rung`.
        """
        rung = await self.rung(folder)
        if rung in {NONE, RUNGS[-1]} or self.settings.network:
            return rung.said
        return f"{rung.said}; no {'TCP connections' if rung.name == 'Landlock' else 'network'}"

    @asynccontextmanager
    async def entered(
        self, argv: Sequence[str], folder: Path, environment: dict[str, str]
    ) -> AsyncIterator[tuple[dict[str, str], Callable[[int], Sequence[str]] | None]]:
        """Yield the environment and the launcher for a program; what it keeps for a while has a folder of its own.

        Raises:
            ToolFailure: as `rung`.
        """
        async with self._in(await self.rung(folder), argv, folder, environment) as entered:
            yield entered

    async def _found(self, folder: Path) -> Rung:
        if sys.platform != "linux" or not sys.executable or self.settings.mode == "off":
            return NONE
        bwrap: str | None = await asyncio.to_thread(shutil.which, "bwrap")
        self._bwrap = bwrap or ""
        for rung in RUNGS:
            if not rung.bubblewrap or self._bwrap:
                environment = {"PATH": os.defpath}
                async with self._in(rung, ["true"], folder, environment) as (given, starting):
                    try:
                        if (await run_program(["true"], folder, given, _PROBE_S, launcher=starting)).status == 0:
                            return rung
                    except OSError:
                        continue
        return NONE

    @asynccontextmanager
    async def _in(
        self, rung: Rung, argv: Sequence[str], folder: Path, environment: dict[str, str]
    ) -> AsyncIterator[tuple[dict[str, str], Callable[[int], Sequence[str]] | None]]:
        if sys.platform != "linux" or not sys.executable:
            yield environment, None
            return
        if rung is NONE:
            await anyio.to_thread.run_sync(_hide_environment)
            yield environment, partial(_command, rung, [], [], network=self.settings.network, bwrap="")
            return
        temporary = await anyio.to_thread.run_sync(partial(tempfile.mkdtemp, prefix="packetgate-"))
        try:
            reads = await anyio.to_thread.run_sync(_readable, argv, environment)
            reads += map(os.path.expanduser, self.settings.reads)
            writes = [str(folder), temporary, *map(os.path.expanduser, self.settings.writes)]
            starting = partial(_command, rung, reads, writes, network=self.settings.network, bwrap=self._bwrap)
            yield {**environment, "TMPDIR": temporary}, starting
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(partial(shutil.rmtree, temporary, ignore_errors=True))


def _command(rung: Rung, reads: list[str], writes: list[str], report: int, *, network: bool, bwrap: str) -> list[str]:
    plan = Plan(
        namespaces=rung.namespaces,
        landlock=rung.landlock,
        network=network,
        reads=[*_SYSTEM.split(), *reads],
        writes=[*_DEVICES.split(), *writes],
        report=report,
        through=[bwrap, *_bubblewrap([launcher.__file__, *reads], writes, network=network)] if rung.bubblewrap else [],
    )
    return [sys.executable, "-I", "-S", launcher.__file__, json.dumps(plan)]


def _bubblewrap(reads: Sequence[str], writes: Sequence[str], *, network: bool) -> list[str]:
    bound = [path for path in _SYSTEM.split() if not path.startswith(("/proc", "/dev"))]
    return [
        *"--die-with-parent --unshare-user --unshare-pid --unshare-ipc --unshare-uts --cap-drop ALL".split(),
        *(() if network else ("--unshare-net",)),
        *"--tmpfs /tmp --proc /proc --dev /dev".split(),
        *(part for path in [*bound, *reads] for part in ("--ro-bind-try", path, path)),
        *(part for path in writes for part in ("--bind-try", path, path)),
        "--",
    ]


def _readable(argv: Sequence[str], environment: dict[str, str]) -> list[str]:
    """Return what programs on the search path, and this one, need for themselves outside the system's folders."""
    path = environment.get("PATH", os.defpath)
    found = shutil.which(argv[0], path=path)
    programs = [Path(sys.prefix, "bin"), Path(sys.base_prefix, "bin"), *map(Path, path.split(os.pathsep))]
    if found:
        programs += [Path(found).parent, Path(found).resolve().parent]
    home = Path(environment.get("HOME") or Path.home())
    needed = [home / name for name in _CONFIGURATION.split()]
    for folder in programs:
        if folder.is_absolute() and not home.is_relative_to(folder):
            beside = _BESIDE_BIN.split() if folder.name in {"bin", "sbin"} else []
            needed += [folder, *(folder.parent / name for name in beside)]
    system = _SYSTEM.split()
    outside = (one for one in needed if not any(one.is_relative_to(folder) for folder in system))
    return list(dict.fromkeys(str(one) for one in outside if one.exists()))


def _hide_environment() -> None:
    """Keep this process's memory, and the environment in it, from programs of the same user."""
    import ctypes

    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
