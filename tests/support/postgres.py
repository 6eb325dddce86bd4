"""A test PostgreSQL server with a temporary data directory and a socket in it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.programs import missing

USER = "postgres"


@contextmanager
def serve_postgres() -> Iterator[str]:
    """Start a server and yield its URL. Without PostgreSQL, skip, but fail in CI."""
    binaries = _binaries()
    with tempfile.TemporaryDirectory(
        prefix="pg-"
    ) as folder:  # short, because a socket's path may have at most about 100 characters
        data = Path(folder, "data")
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(folder, USER)
        _run(binaries / "initdb", "--pgdata", data, "--username", USER, "--auth", "trust", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        control = [binaries / "pg_ctl", "--pgdata", data, "--wait"]
        _run(*control, "--log", Path(folder, "log"), "--options", options, "start")
        try:
            yield f"postgresql://{USER}@/postgres?host={folder}"
        finally:
            _run(*control, "--mode", "immediate", "stop")


def _binaries() -> Path:
    on_path = shutil.which("pg_ctl")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    if not on_path and not installed:
        missing("this test needs PostgreSQL, which is not installed: apt-get install postgresql")
    return Path(on_path or installed[-1]).resolve().parent


def _run(*command: str | Path) -> None:
    as_user = ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*as_user, *command], cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr.decode()
