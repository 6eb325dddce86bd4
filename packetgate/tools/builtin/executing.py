"""What `ai.execute` does."""

import asyncio
import os
import shlex
import shutil
import signal
from collections.abc import Mapping, Sequence

from packetgate.tools.builtin.failures import ToolFailure
from packetgate.tools.builtin.process import Finished, run_program
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.sandbox import Sandbox

_KEPT = ("PATH", "HOME", "LANG", "TERM", "TMPDIR")
"""The only variables a program is given: everything else may be a secret."""


async def execute(root: Root, sandbox: Sandbox, argv: Sequence[str], timeout_s: float, *, dry_run: bool) -> str:
    """Run a program in the root, or tell what would run, and return its output and exit status in words.

    Raises:
        ToolFailure: it cannot be started, ran past the time-out, or ended with another status than 0; or a sandbox is
            required and there is none.
    """
    command = shlex.join(argv)
    if not argv or not argv[0].strip():
        raise ToolFailure('argv names no program: give the program first, then its arguments, as in ["ls", "-l"]')
    environment = minimal_environment(os.environ)
    folder = await asyncio.to_thread(lambda: root.path)
    if dry_run:
        program = await asyncio.to_thread(_find, argv[0], root, environment["PATH"])
        found = f"The program is {program}." if program else f"The program {argv[0]!r} was not found."
        kept = await sandbox.said(folder)
        return f"Would run: {command}\nIn {folder}, for at most {timeout_s:g} s. {found}\nSandbox: {kept}."
    try:
        async with sandbox.entered(argv, folder, environment) as (given, launcher):
            finished = await run_program(argv, folder, given, timeout_s, launcher=launcher)
    except FileNotFoundError as error:
        raise ToolFailure(
            f"cannot run {argv[0]!r}: no such program, or the interpreter it names is missing; "
            "argv is one program and its arguments, no shell"
        ) from error
    except (OSError, ValueError) as error:
        raise ToolFailure(f"cannot run {argv[0]!r}: {getattr(error, 'strerror', None) or error}") from error
    report = _report(command, finished, timeout_s)
    if finished.timed_out or finished.status != 0:
        raise ToolFailure(report)
    return report


def minimal_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a program may see of the environment."""
    return {"PATH": os.defpath} | {name: environment[name] for name in _KEPT if name in environment}


def _find(program: str, root: Root, path: str) -> str | None:
    return shutil.which(str(root.path / program) if os.sep in program else program, path=path)


def _report(command: str, finished: Finished, timeout_s: float) -> str:
    if finished.timed_out:
        end = f"Stopped after {timeout_s:g} s (time-out)"
    elif finished.status < 0:
        end = f"Ended by signal {-finished.status} ({signal.strsignal(-finished.status)})"
    else:
        end = f"Exit status {finished.status}"
    streams = (("stdout", finished.stdout), ("stderr", finished.stderr))
    written = [f"--- {name}\n{text.rstrip()}" for name, text in streams if text.strip()]
    return "\n".join([f"{end}: {command}", *(written or ["(no output)"])])
