"""Private names of libraries are used in one module only, and work as that module expects."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, Context, FastMCP
from langgraph._internal import _constants
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.constants import END, START
from mcp.server.connection import Connection

import packetgate
from packetgate.state import private_names
from packetgate.state.packet import checkpoint_types
from packetgate.state.private_names import allow_checkpoint_types, connection_of
from packetgate.state.sections import Header

PACKAGE = Path(packetgate.__path__[0])
PUBLIC = {"_exit", "_asdict", "_replace", "_fields"}
"""Names that Python documents."""
OF_LANGGRAPH = {one for one in vars(_constants).values() if isinstance(one, str)} - {START, END}
"""What LangGraph calls its own keys, channels and stages."""
HOOKS = {"_generate", "_agenerate", "_stream", "_astream", "_llm_type", "_provider", "_classify", "_aclassify"} | {
    f"_{verb}_{what}"
    for verb, ends in (("list", "s"), ("get", ""))
    for what in (f"tool{ends}", f"resource{ends}", f"resource_template{ends}", f"prompt{ends}")
}
"""What LangChain and FastMCP document as methods that chat models, decision models and providers override."""
OF_OPENAI = {
    "_get_request_payload": ["input_", "stop", "kwargs"],
    "_create_chat_result": ["response", "generation_info"],
    "_convert_chunk_to_generation_chunk": ["chunk", "default_chunk_class", "base_generation_info"],
}
"""What langchain-openai's models for other servers override, with its parameters; it is documented nowhere."""


@pytest.mark.slow
def test_no_other_module_uses_a_private_name() -> None:
    modules = {file: ast.parse(file.read_text()) for file in PACKAGE.rglob("*.py")}
    own = {file: set(defined(tree)) for file, tree in modules.items()}
    of_classes = set().union(*own.values()) | HOOKS | OF_OPENAI.keys()
    found = {
        f"{file.relative_to(PACKAGE)}:{line}: {name}"
        for file, tree in modules.items()
        for line, name, is_of_self in private(tree)
        if name
        not in (of_classes if is_of_self else own[file].union(*(own[one] for one in imported(tree) & own.keys())))
    }
    assert {one for one in found if not one.startswith("state/private_names.py")} == set()
    assert found, "the script finds nothing at all"


def imported(tree: ast.Module) -> set[Path]:
    """Return the files of the package's modules that a module imports."""
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {PACKAGE.parent / f"{name.replace('.', '/')}.py" for name in names}


def private(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield line and name of each private name, and whether it is of `self`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name("self" | "cls") | ast.Call(ast.Name("super")), attr=name):
                uses, is_user_message = [name], True
            case ast.Attribute(attr=name):
                uses, is_user_message = [name], False
            case ast.ImportFrom(module=str(module), names=names) if not module.startswith("packetgate"):
                uses, is_user_message = [*module.split("."), *(one.name for one in names)], False
            case ast.Import(names=names):
                uses, is_user_message = [part for one in names for part in one.name.split(".")], False
            case ast.Constant(str(text)) if text.startswith("__"):
                uses, is_user_message = (
                    [text] if text in OF_LANGGRAPH or text.startswith("__error_handler__") else [],
                    False,
                )
            case ast.Call(ast.Name("getattr" | "setattr" | "hasattr"), [_, ast.Constant(str(text)), *_]):
                uses, is_user_message = [text], False
            case _:
                continue
        python = not isinstance(node, ast.Constant)  # `__name__` and the like
        for name in uses:
            if name.startswith("_") and name not in PUBLIC and not (python and name.endswith("__")):
                yield node.lineno, name, is_user_message


def defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(value=ast.Name("self"), attr=name, ctx=ast.Store()) | ast.Name(name, ast.Store()):
                yield name


def test_langgraph_has_these_names() -> None:
    assert private_names.STRICT_RESUME == _constants.CONFIG_KEY_STRICT_RESUME
    assert {_constants.ERROR, _constants.ERROR_SOURCE_NODE} == private_names.ERROR_WRITES
    assert private_names.is_nested({_constants.CONFIG_KEY_READ: print})
    assert not private_names.is_nested({_constants.CONFIG_KEY_READ: "from a client"})


def test_other_serializers_restore_our_types() -> None:
    allow_checkpoint_types(checkpoint_types())
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    header = Header()
    assert strict.loads_typed(JsonPlusSerializer().dumps_typed(header)) == header


def test_a_registered_call_runs_before_threads_are_joined() -> None:
    program = """
import threading
from packetgate.state.private_names import call_before_threads_end
end = threading.Event()
call_before_threads_end(end.set)
threading.Thread(target=end.wait).start()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


async def test_a_fastmcp_server_gives_its_connection_and_accepts_a_method() -> None:
    server: FastMCP[Any] = FastMCP("server")

    @server.tool
    async def look(context: Context) -> str:
        connection = connection_of(context.session)
        assert isinstance(connection, Connection)
        assert connection.initialized.is_set()
        seen.append(connection)
        return ""

    seen: list[Connection] = []
    async with Client(server, mode="legacy") as client:
        assert client.session.server_capabilities is not None
        await client.call_tool("look")
        await client.call_tool("look")
    assert seen[0] is seen[1], "one client, one connection"
