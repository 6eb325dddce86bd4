"""Programs that some tests need: find them, or skip the test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def require(program: str) -> str:
    """Return the path of a program. If it is missing, skip, but fail in CI."""
    beside_python = str(Path(sys.executable).parent)
    found = shutil.which(program, path=beside_python) or shutil.which(program)
    return found or missing(f"this test needs `{program}`, which is not installed")


def missing(reason: str) -> NoReturn:
    """Skip the test, but fail in CI."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def descendants(of: int | None = None) -> dict[int, str]:
    """Return the command lines by process id of all running descendants of a process, by default this process."""
    listing = subprocess.run(
        [require("ps"), "-A", "-ww", "-o", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 3) for line in listing.stdout.splitlines()]
    children: dict[int, list[int]] = {}
    commands: dict[int, str] = {}
    for pid, parent, state, *args in rows:
        if not state.startswith("Z"):
            commands[int(pid)] = " ".join(args)
            children.setdefault(int(parent), []).append(int(pid))
    below: dict[int, str] = {}
    waiting = list(children.get(os.getpid() if of is None else of, ()))
    while waiting:
        pid = waiting.pop()
        below[pid] = commands[pid]
        waiting += children.get(pid, ())
    return {pid: command for pid, command in below.items() if "pid=,ppid=" not in command}
