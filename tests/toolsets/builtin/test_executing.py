import asyncio
import sys

import pytest
from support.sleepers import Sleepers

from packetgate.toolsets.servers.opening import builtin_servers


@pytest.fixture
def sleepers() -> Sleepers:
    return Sleepers()


@pytest.fixture(autouse=True)
def script(folder) -> None:
    (folder / "hello.sh").write_text("#!/bin/sh\necho hello\n")
    (folder / "hello.sh").chmod(0o755)


@pytest.mark.parametrize(
    ("argv", "output"),
    [
        (["echo", "$(id)", "*", ">x"], "Exit status 0: echo '$(id)' '*' '>x'\n--- stdout\n$(id) * >x"),
        (["sh", "-c", "pwd; cat"], "Exit status 0: sh -c 'pwd; cat'\n--- stdout\nFOLDER"),  # in the folder, no input
        (["printf", r"a\377b"], "Exit status 0: printf 'a\\377b'\n--- stdout\na\ufffdb"),
        (["true"], "Exit status 0: true\n(no output)"),
        (["./hello.sh"], "Exit status 0: ./hello.sh\n--- stdout\nhello"),
    ],
)
async def test_a_program_runs_without_a_shell_and_its_output_is_returned(succeed, folder, argv, output):
    assert await succeed("ai.execute", argv=argv, dry_run=False) == output.replace("FOLDER", str(folder))


@pytest.mark.parametrize(
    ("program", "found"),
    [("sh", "The program is /"), ("./hello.sh", "The program is FOLDER/hello.sh"), ("no-such-thing", "was not found")],
)
async def test_a_dry_run_runs_nothing(succeed, folder, unchanged, program, found):
    unchanged()
    answer = await succeed("ai.execute", argv=[program, "-c", "touch x"])
    assert answer.startswith(f"Would run: {program} -c 'touch x'\nIn {folder}, for at most 30 s. ")
    assert found.replace("FOLDER", str(folder)) in answer
    assert "\nSandbox: " in answer


async def test_a_failure_has_status_and_output(fail):
    error = await fail("ai.execute", argv=["sh", "-c", "echo out; echo err >&2; exit 3"], dry_run=False)

    assert error.startswith("Exit status 3: sh -c")
    assert error.endswith("--- stdout\nout\n--- stderr\nerr")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["no-such-thing"], "cannot run 'no-such-thing': no such program"),
        (["./plain.txt"], "cannot run './plain.txt': it is not executable; put the program that runs it"),
        (["echo", "a\0b"], "cannot run 'echo': embedded null byte"),
        ([""], "argv[0] is empty"),
        (["  "], "argv[0] is empty"),
    ],
)
async def test_a_program_that_cannot_start_is_reported(fail, folder, argv, says):
    (folder / "plain.txt").write_text("text")

    assert says in await fail("ai.execute", argv=argv, dry_run=False)


async def test_the_environment_has_no_secrets(succeed, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HOME", "/home/someone")

    answer = await succeed("ai.execute", argv=["env"], dry_run=False)

    names = {line.partition("=")[0] for line in answer.splitlines()[2:]}
    assert names <= {"PATH", "HOME", "LANG", "TERM", "TMPDIR", "PYTHONDONTWRITEBYTECODE"}
    assert "HOME=/home/someone" in answer
    assert "sk-secret" not in answer


async def test_long_output_is_cut_in_the_middle(succeed):
    code = "import sys; print('first' + 'x' * 300_000 + 'last'); sys.stderr.write('y' * 45_000)"

    answer = await succeed("ai.execute", argv=[sys.executable, "-c", code], dry_run=False)

    stdout, stderr = answer.split("--- stderr\n")
    assert "\n[255,010 bytes cut]\n" in stdout
    assert "--- stdout\nfirstx" in stdout
    assert stdout.rstrip().endswith("xlast")
    assert stderr == "y" * 45_000


async def test_the_timeout_ends_all_processes(fail, sleepers):
    error = await fail("ai.execute", argv=["sh", "-c", f"{sleepers.script}wait"], timeout_s=1, dry_run=False)

    assert error.startswith("Stopped after 1 s (time-out): sh -c")
    assert error.endswith("--- stdout\nstarted")
    assert sleepers.end()


async def test_a_cancelled_call_leaves_no_process(folder, sleepers):
    arguments = {"argv": ["sh", "-c", f"{sleepers.script}wait"], "timeout_s": 200, "dry_run": False}
    call = asyncio.create_task(builtin_servers(folder)["ai"].call("execute", arguments))
    await asyncio.to_thread(sleepers.begin)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(sleepers.end)


async def test_sigterm_is_sent_before_sigkill(fail, folder):
    script = "trap 'echo bye > bye; exit 0' TERM; sleep 300 & wait"

    await fail("ai.execute", argv=["sh", "-c", script], timeout_s=1, dry_run=False)

    assert (folder / "bye").read_text() == "bye\n"
    assert {entry.name for entry in folder.iterdir()} == {"bye", "hello.sh"}
