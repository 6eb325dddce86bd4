# ruff: noqa: E501 - each row is an attack on one line
"""Files that a program in bubblewrap leaves behind must not run outside later."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support.programs import descendants, require

from packetgate.toolsets.builtin.executing import executing_tools
from packetgate.toolsets.builtin.files import Root, ToolFailure
from packetgate.toolsets.builtin.left_behind import LeftBehind
from packetgate.toolsets.builtin.sandbox import Sandbox, SandboxMode, SandboxSettings
from packetgate.toolsets.servers.opening import GIT_VARIABLES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")

PLANT = "printf '#!/bin/sh\\ntouch RAN\\n' > evil; chmod +x evil; "
"""A program that writes a mark outside the working folder."""
FSMONITOR = "printf '[core]\\nfsmonitor = %s/evil\\n' $PWD"
REPOSITORY = (
    "git init -q . && git config user.email a@b.c && git config user.name n && touch a && git add a && git commit -qm a"
)
VENV = f"{sys.executable} -m venv --without-pip env"
SITE = f"env/lib/python{sysconfig.get_python_version()}/site-packages"
MODULES = "mkdir -p node_modules/x; echo '' > node_modules/x/index.js"
GIT_ATTACKS = {
    "fsmonitor": (REPOSITORY, f"{FSMONITOR} >> .git/config", "git status"),
    "another configuration": (REPOSITORY, f"{FSMONITOR} > n; mv n .git/config; mv .git g; cp -r g .git", "git status"),
    "a hook of status": (REPOSITORY, "cp evil .git/hooks/post-index-change", "touch a; git status"),
    "hooks elsewhere": (REPOSITORY, "git config core.hooksPath $PWD; cp evil post-index-change", "touch a; git status"),
    "an external diff": (REPOSITORY, "echo b > a; git config diff.external ./evil", "git diff"),
    "a text filter": (REPOSITORY, "echo 'a diff=x' > .gitattributes; git config diff.x.textconv ./evil; echo > a", "git diff"),
    "a clean filter": (REPOSITORY, "echo 'a filter=x' > .gitattributes; git config filter.x.clean ./evil; echo > a", "git diff"),
    "a common folder": (REPOSITORY, f"cp -r .git g; {FSMONITOR} > g/config; echo ../g > .git/commondir", "git status"),
    "configuration of a worktree": (
        f"{REPOSITORY}; git config extensions.worktreeConfig true",
        f"{FSMONITOR} > .git/config.worktree",
        "git status",
    ),
    "an included file": (
        f"{REPOSITORY}; touch shared.cfg; git config include.path ../shared.cfg",
        f"{FSMONITOR} > shared.cfg; {FSMONITOR} > n; mv n shared.cfg",
        "git status",
    ),
    "a program of the configuration": (
        f"{REPOSITORY}; mkdir tools; touch tools/d; chmod +x tools/d; git config diff.external ./tools/d",
        "cp evil tools/d; cp evil n; mv n tools/d; echo b > a",
        "git diff",
    ),
    "a new repository": ("", f"git init -q .; {FSMONITOR} >> .git/config; cp evil .git/hooks/post-index-change", "git status"),
    "a new repository below": ("", f"git init -q x/y; {FSMONITOR} >> x/y/.git/config", "cd x/y && git status"),
    "a bare repository": ("", f"git init -q --bare b; {FSMONITOR} >> b/config; git config -f b/config core.bare false; git config -f b/config core.worktree $PWD", "cd b && git status"),
    "a file in place of a folder": ("", f"git init -q g; mv g/.git evilgit; {FSMONITOR} >> evilgit/config; echo gitdir: evilgit > .git", "git status"),
    "configuration before the repository": ("", f"mkdir .git; {FSMONITOR} > .git/config", "git init -q; git status"),
    "a submodule": (
        f"{REPOSITORY}; git init -q m; cd m; {REPOSITORY}; cd ..; git -c protocol.file.allow=always submodule -q add ./m sub",
        f"{FSMONITOR} >> .git/modules/sub/config",
        "cd sub && git status",
    ),
    "a linked worktree": (
        f"{REPOSITORY}; git worktree add -q tree",
        f"cp -r .git g; {FSMONITOR} >> g/config; echo $PWD/g > .git/worktrees/tree/commondir",
        "cd tree && git status",
    ),
}  # fmt: skip
OTHER_ATTACKS = {
    "a .pth of another environment": (VENV, f"echo 'import os; os.system(\"$PWD/evil\")' > {SITE}/x.pth", "env/bin/python -c 1", "x.pth"),
    "a program of another environment": (VENV, "rm env/bin/python; cp evil env/bin/python", "env/bin/python -c 1", "bin/python"),
    "a changed package": (
        f"{VENV}; touch {SITE}/mod.py",
        f"echo 'import os; os.system(\"$PWD/evil\")' > {SITE}/mod.py; touch -d 2001-01-01 {SITE}/mod.py",
        "env/bin/python -c 'import mod'",
        "mod.py",
    ),
    "a package of node": (MODULES, "echo \"require('child_process').execSync('$PWD/evil')\" > node_modules/x/index.js", "node -e \"require('x')\"", "x/index.js"),
    "settings of npm": ("echo '{\"scripts\": {\"x\": \"true\"}}' > package.json", "echo script-shell=$PWD/evil > .npmrc", "npm run x", ".npmrc"),
    "a stopped rebase": (
        REPOSITORY,
        "git commit -q --allow-empty -m b; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -qi HEAD~1; "
        "echo exec ./evil >> .git/rebase-merge/git-rebase-todo",
        "git rebase --continue",
        "git-rebase-todo",
    ),
    "a folder that is renamed": (
        "mkdir app; echo true > app/.envrc",
        "mv app old; mkdir app; echo $PWD/evil > app/.envrc",
        ". app/.envrc",
        "app/.envrc",
    ),
    "a module of Python at the start of a session": ("", "echo 'import os; os.system(\"./evil\")' > sitecustomize.py", "PYTHONPATH=. python3 -c 1", "nothing"),
    "settings of an interpreter": ("echo 'breakpoint()' > a.py", "echo 'import os; os.system(\"./evil\")' > .pdbrc", "python3 a.py", ".pdbrc"),
    "commands of a debugger": ("", "echo 'shell ./evil' > .gdbinit", "sh -c 'tail -c 7 .gdbinit | sh'", ".gdbinit"),
    "hooks of a folder that the configuration names": (f"{REPOSITORY}; mkdir .githooks; git config core.hooksPath .githooks", "cp evil .githooks/post-index-change", "touch a; git status", "nothing"),
    "tasks of an editor": ("", "mkdir .vscode; echo ./evil > .vscode/tasks.json", "sh .vscode/tasks.json", ".vscode"),
    "a link to hooks": (
        f"{REPOSITORY}; mkdir hooks; rm -rf .git/hooks; ln -s ../hooks .git/hooks",
        "cp evil hooks/post-index-change; rm .git/hooks; mkdir .git/hooks; cp evil .git/hooks/post-index-change",
        "touch a; git status",
        "nothing",
    ),
}  # fmt: skip


CODE = """
import asyncio, sys
from pathlib import Path
from packetgate.toolsets.builtin.executing import executing_tools
from packetgate.toolsets.builtin.files import Root
from packetgate.toolsets.builtin.sandbox import Sandbox, SandboxSettings

_, folder, script = sys.argv
(tool,) = executing_tools(Root(Path(folder)), Sandbox(SandboxSettings(mode="require")))
print(asyncio.run(tool.call({"argv": ["sh", "-c", script], "dry_run": False})).text)
"""


@pytest.fixture(autouse=True)
def bubblewrap() -> None:
    require("bwrap")


@pytest.fixture
def run(folder: Path):
    async def run(*argv: str, mode: SandboxMode = "require", memory_gb: float = 4.0) -> str:
        (tool,) = executing_tools(Root(folder), Sandbox(SandboxSettings(mode=mode, memory_gb=memory_gb)))
        try:
            return (await tool.call({"argv": [*argv], "timeout_s": 60, "dry_run": False})).text
        except ToolFailure as error:
            return str(error)

    return run


def outside(folder: Path, script: str, **variables: str) -> None:
    script = script.replace("RAN", str(folder.parent / "ran"))
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, **variables}
    subprocess.run(["sh", "-c", script], cwd=folder, env=environment, capture_output=True, timeout=60, check=False)


def has_run(folder: Path) -> bool:
    return (folder.parent / "ran").exists()


@pytest.mark.parametrize("attack", GIT_ATTACKS)
async def test_git_of_a_server_runs_nothing_that_a_program_left(run, folder, attack: str):
    before, attack, later = GIT_ATTACKS[attack]
    outside(folder, before)
    await run("sh", "-c", f"{PLANT}{attack}".replace("RAN", str(folder.parent / "ran")))
    outside(folder, later, **GIT_VARIABLES)
    assert not has_run(folder)


@pytest.mark.parametrize("attack", [*GIT_ATTACKS, *OTHER_ATTACKS])
async def test_code_that_would_run_later_is_prevented_or_named(run, folder, attack: str):
    before, script, later, *named = (GIT_ATTACKS | OTHER_ATTACKS)[attack]
    if shutil.which(later.split()[0]) is None and later.startswith("n"):
        pytest.skip("not installed")
    outside(folder, before)
    report = await run("sh", "-c", f"{PLANT}{script}".replace("RAN", str(folder.parent / "ran")))
    outside(folder, later)
    assert not has_run(folder) or (named and named[0] in report.partition("\n")[2]), report  # without the command


NORMAL_WORK = {
    "commit": (REPOSITORY, "echo b > a; git add a; git commit -qm b; git checkout -q -b x; git log --oneline | wc -l", "2"),
    "commit in a submodule": (
        f"{REPOSITORY}; git init -q m; cd m; {REPOSITORY}; cd ..; git -c protocol.file.allow=always submodule -q add ./m sub",
        "cd sub; echo b > a; git -c user.name=n -c user.email=e commit -qam b; git log --oneline | wc -l",
        "2",
    ),
    "commit in a worktree": (
        f"{REPOSITORY}; git worktree add -q tree",
        "cd tree; echo b > a; git commit -qam b; git log --oneline | wc -l",
        "2",
    ),
    "a new repository": ("", f"({REPOSITORY}) > out; git log --oneline | wc -l", "1"),
    "install into another environment": (VENV, f"echo 'x = 1' > {SITE}/mod.py; env/bin/python -c 'import mod; print(mod.x)'", "1"),
    "install a package of node": ("", f"{MODULES}; ls node_modules", "x"),
    "run a hook": (f"{REPOSITORY}; echo 'echo hook' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "git commit --allow-empty -qm b 2>&1", "hook"),
}  # fmt: skip


@pytest.mark.parametrize("work", NORMAL_WORK)
async def test_normal_work_is_possible(run, folder, work: str):
    before, script, output = NORMAL_WORK[work]
    outside(folder, before)
    assert (await run("sh", "-c", script)).endswith(f"--- stdout\n{output}")


async def test_changes_are_named_once_and_briefly(run, folder):
    outside(folder, f"{VENV}; {MODULES}")
    many = (
        f"for i in 1 2 3 4 5 6 7 8; do touch {SITE}/m$i.py; done; touch {SITE}/y.pth; echo 1 > node_modules/x/index.js"
    )
    line = (await run("sh", "-c", many)).splitlines()[1]
    folder_name = SITE.removeprefix("env/")
    assert line.startswith("Changed what programs outside the sandbox may run: ")
    assert f"env ({folder_name}/y.pth, " in line
    assert " and 4 more)" in line
    assert "node_modules (x/index.js)" in line
    assert "Changed" not in await run("sh", "-c", "env/bin/python -c 'import m1' && cat node_modules/x/index.js")


async def test_files_that_run_by_themselves_are_moved_aside(run, folder):
    report = await run("sh", "-c", f"{REPOSITORY} > out; {FSMONITOR} >> .git/config; touch .git/hooks/pre-commit")
    assert "Moved aside (to NAME.unconfirmed), because they run by themselves: .git/config, .git/hooks\n" in report
    assert (folder / ".git" / "config.unconfirmed").exists()
    assert "Moved" not in await run("git", "status")


@pytest.mark.parametrize("environment", ["env", "linked", "packages/env"])
def test_the_environment_of_packetgate_is_read_only(folder, environment):
    where, own = environment.replace("linked", "env"), sysconfig.get_path("purelib")
    site = SITE.replace("env", where, 1)
    linked = "ln -s env linked" if environment == "linked" else "true"
    outside(
        folder,
        f"{VENV.removesuffix('env')}{where}; echo {own} > {site}/own.pth; cp {own}/*packetgate*.pth {site}; {linked}",
    )
    attack = f"""{PLANT}cp evil {where}/bin/packetgate; echo 'import os; os.system("'$PWD/evil'")' > {site}/x.pth
        mkdir -p new/bin; cp evil new/bin/python; mv {where} old; cp -r new {where}; mv packages p; mkdir -p packages/env
        rm linked; ln -s new linked; touch fine"""
    command = [
        folder / environment / "bin" / "python",
        "-c",
        CODE,
        folder,
        attack.replace("RAN", f"{folder.parent}/ran"),
    ]
    subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (folder / "fine").exists()
    outside(folder, f"{environment}/bin/python -c 1; {environment}/bin/packetgate")
    assert not has_run(folder)


TOO_MANY, TOO_MUCH = "it had more than 1,000 processes and threads", "it used more than 0.3 GB of memory"
SLEEPERS = "for i in $(seq 1500); do sleep 60 & done; wait"
FILLED = "exec python3 -c \"x = b'x' * 600_000_000; import time; time.sleep(60)\""


@pytest.mark.parametrize(
    ("mode", "script", "limit"),
    [
        ("require", SLEEPERS, TOO_MANY),
        ("require", 'exec python3 -c "import os\nwhile True: os.fork()"', TOO_MANY),  # otherwise unlimited in between
        ("require", FILLED, TOO_MUCH),
        ("off", SLEEPERS, TOO_MANY),
        ("off", FILLED, TOO_MUCH),
    ],
)
async def test_a_command_that_exceeds_a_limit_ends_at_once(run, mode, script, limit):
    report = await run(
        "bash", "-c", script.replace("\\n", "\n"), mode=mode, memory_gb=0.3 if "memory" in limit else 4.0
    )
    assert report.startswith(f"Stopped because {limit}: bash -c")
    assert not [line for line in descendants() if "sleep 60" in str(line) or "os.fork" in str(line)]


async def test_shared_memory_counts_once(run):
    code = "import os, time; x = b'x' * 200_000_000; [os.fork() or (time.sleep(1), os._exit(0)) for _ in range(5)]; time.sleep(1)"
    assert (await run(sys.executable, "-c", code, memory_gb=0.6)).startswith("Exit status 0")


def test_a_hidden_folder_is_not_searched(tmp_path: Path):
    data, own = tmp_path / "data", tmp_path / "node_modules"
    for folder in (data / "node_modules", own):
        folder.mkdir(parents=True)
    left = LeftBehind([tmp_path], hidden=[data])
    for folder in (data / "node_modules", own):
        (folder / "new.js").touch()
    (line,) = left.report(tmp_path)
    assert line.endswith("run: node_modules (new.js)")
