"""A pytest plugin that kills the processes of a test run when the run ends, including background processes."""

import os
import signal
import subprocess
import sys
from uuid import uuid4

import pytest
from support import watcher


def pytest_configure(config: pytest.Config) -> None:
    """Start the watcher in the main process of the run."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # compiles bytecode once for the many processes
    if watcher.MARK not in os.environ:
        os.environ[watcher.MARK] = run = uuid4().hex
        command = [sys.executable, "-S", watcher.__file__, run]
        watching = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env={})
        config.add_cleanup(watching.communicate)


@pytest.fixture(scope="session", autouse=True)
def _restore_ctrl_c() -> None:
    """Restore the handling of Ctrl-C, which a shell disables for background runs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)
