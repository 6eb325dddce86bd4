"""A working folder, and calls to the built-in servers."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from packetgate.state.routing import ToolResult
from packetgate.toolsets.servers.opening import builtin_servers

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working folder. Files next to it are outside."""
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("outside\n")
    return folder


@pytest.fixture
def call(folder: Path) -> Call:
    servers = builtin_servers(folder)

    async def call(name: str, /, **arguments: object) -> ToolResult:
        server, tool = name.split(".")
        return await servers[server].call(tool, arguments)

    return call


@pytest.fixture
def succeed(call: Call) -> Callable[..., Awaitable[str]]:
    """Call a tool, expect success, and return the text."""

    async def succeed(name: str, /, **arguments: object) -> str:
        result = await call(name, **arguments)
        assert result.success, result.error
        return result.output

    return succeed


@pytest.fixture
def fail(call: Call) -> Callable[..., Awaitable[str]]:
    """Call a tool, expect an error, and return its text."""

    async def fail(name: str, /, **arguments: object) -> str:
        result = await call(name, **arguments)
        assert result.error is not None, result.output
        return result.error

    return fail


def everything(folder: Path) -> dict[str, bytes | None]:
    """Return every path below a folder, with the content of files."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.fixture
def unchanged(tmp_path: Path):
    """Check that the test leaves the disk unchanged; call this after the test has written its own files."""
    before: dict[str, bytes | None] = {}
    yield lambda: before.update(everything(tmp_path))
    assert before, "the test never took its snapshot"
    assert everything(tmp_path) == before
