"""A plugin of pytest: whatever a run starts ends with it, and a run in the background is like any other."""

import os
import signal
import subprocess
import sys
from uuid import uuid4

import pytest
from support import watcher


def pytest_configure(config: pytest.Config) -> None:
    """Have the run watched, from the process that all others of it come from."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # much is started, and nothing should be compiled twice
    if watcher.MARK not in os.environ:
        os.environ[watcher.MARK] = run = uuid4().hex
        command = [sys.executable, "-S", watcher.__file__, run]
        watching = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env={})
        config.add_cleanup(watching.communicate)


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heeded() -> None:
    """Let what tests start take notice of Ctrl-C, which a shell has it ignore if the run is in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)
