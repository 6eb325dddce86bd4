"""A working folder whose recorded changes can be undone, even after a process is killed."""

import asyncio
import os
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from packetgate.state.base import new_id
from packetgate.state.routing import ToolResult
from packetgate.tools.text.result_store import session_results
from packetgate.toolsets.builtin.undo_store import History, UndoStore
from packetgate.toolsets.servers.opening import builtin_servers

_CHILD = """
import os, sys
from pathlib import Path
from support.undo_desk import UndoDesk
place, call_id, when, step, tool, *pairs = sys.argv[1:]
desk = UndoDesk(Path(place))
if step:
    real, seen = getattr(os, step), []
    def killing(*args, **options):
        if not str(args[0]).startswith(str(desk.home)):
            if when == "after":
                real(*args, **options)
            os.kill(os.getpid(), 9)
        return real(*args, **options)
    setattr(os, step, killing)
result = desk.call(tool, call_id=call_id, **dict(pair.split("=", 1) for pair in pairs))
print(result.output or result.error)
"""


@dataclass
class UndoDesk:
    """Calls the built-in tools as calls of a session."""

    place: Path
    session: str = "s"
    root: Path = field(init=False)
    home: Path = field(init=False)

    def __post_init__(self) -> None:
        self.root, self.home = self.place / "work", self.place / "home"
        self.root.mkdir(exist_ok=True)
        self.store = UndoStore(self.home / "undo.db")
        self.server = builtin_servers(self.root, undo=self.store)["ai"]

    def call(self, tool: str, *, call_id: str = "", dry_run: bool = False, **arguments: object) -> ToolResult:
        """Call a tool of `ai` for real or as a dry run, with the arguments completed as in every call."""
        resolve = {spec.upstream_name: spec.resolve_arguments for spec in self.server.tool_specs()}[tool]
        with session_results(self.session, call_id or new_id()):
            arguments = resolve(arguments) if resolve else arguments
            return asyncio.run(self.server.call(tool, {**arguments, "dry_run": dry_run}))

    def do(self, tool: str, **arguments: object) -> str:
        """Call a tool, expect success, and return the id of the call."""
        call_id = new_id()
        result = self.call(tool, call_id=call_id, **arguments)
        assert result.success, result.error
        return call_id

    def refused(self, tool: str = "undo", **arguments: object) -> str:
        """Call a tool, expect an error and an unchanged folder, and return the error."""
        before = self.tree()
        result = self.call(tool, **arguments)
        assert result.error is not None, result.output
        assert self.tree() == before
        return result.error

    def start(self, tool: str, *, call_id: str = "", kill: str = "", **arguments: str) -> subprocess.Popen[str]:
        """Start a process that calls a tool; `kill="before unlink"` kills it before or after that system call."""
        when, _, step = kill.partition(" ")
        pairs = [f"{name}={value}" for name, value in arguments.items()]
        command = [sys.executable, "-c", _CHILD, str(self.place), call_id, when, step, tool, *pairs]
        paths = os.pathsep.join(sys.path)
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths})

    def tree(self) -> dict[str, tuple[int, bytes | str | None]]:
        """Return the mode and content of every path below the root."""
        found: dict[str, tuple[int, bytes | str | None]] = {}
        for path in sorted(self.root.rglob("*")):
            mode, name = stat.S_IMODE(path.lstat().st_mode), str(path.relative_to(self.root))
            content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[name] = mode, content
        return found

    @property
    def history(self) -> History:
        """The recorded changes that the session sees."""
        return History(self.store.changes(), self.session, str(self.root.resolve()))
