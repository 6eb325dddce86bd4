"""A run of the tests that is killed, and one in the background."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import watcher
from support.mcp_servers import alive, until

SUPPORT = Path(watcher.__file__).parents[1]
STARTS = """
import subprocess
from pathlib import Path

def test_it():
    server = subprocess.Popen(["sleep", "300"], start_new_session=True)
    Path("pid.new").write_text(str(server.pid))
    Path("pid.new").rename("pid")
    assert server.wait() == -2
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run pytest on a test that starts a server and waits for its end, as a shell starts it with `&`."""
    (tmp_path / "test_it.py").write_text(STARTS)
    environment = {name: value for name, value in os.environ.items() if name != watcher.MARK}
    ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
    pytest_ = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "xdist",
        "-n",
        "1",
        "-p",
        "support.runs",
        "-p",
        "no:cacheprovider",
    ]
    environment |= {"PYTHONPATH": str(SUPPORT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    process = subprocess.Popen([*ignoring, *pytest_], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()


async def server_of(folder: Path) -> int:
    await until((folder / "pid").exists)
    return int((folder / "pid").read_text())


async def test_a_killed_run_leaves_nothing_behind(run, tmp_path: Path) -> None:
    server = await server_of(tmp_path)
    run.kill()
    run.wait()
    await until(lambda: not alive(server))


async def test_what_a_run_in_the_background_starts_takes_notice_of_ctrl_c(run, tmp_path: Path) -> None:
    server = await server_of(tmp_path)
    run.send_signal(signal.SIGINT)
    os.kill(server, signal.SIGINT)
    assert run.wait() == 0
