"""Imports of a command, which take most of its start-up time."""

import subprocess

import pytest
from support.command_line import COMMAND, CommandLine

SERVERS = {"fastmcp", "mcp", "mcp_types", "starlette", "uvicorn", "jsonschema"}
MODELS = {"openai", "langchain_openai", "llama_cpp"}


def loaded(cli: CommandLine, *words: str) -> set[str]:
    """Return the modules that a command imports in a new process."""
    environment = {**cli.environment, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        [str(COMMAND), *words], cwd=cli.folder, env=environment, capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("request_words", ["hello", "Read a.txt"])
def test_the_built_in_tools_import_no_server_and_no_model_code(cli: CommandLine, request_words: str) -> None:
    (cli.folder / "a.txt").write_text("apples\n")
    modules = loaded(cli, "ask", request_words)
    assert "langgraph" in modules
    assert not modules & (SERVERS | MODELS)
    assert not modules & {"packetgate.deciders.language.selection", "packetgate.models.stripping"}


def test_small_talk_does_not_load_the_request_encoders(cli: CommandLine) -> None:
    modules = loaded(cli, "ask", "hello")
    assert "packetgate.reflex.intent" in modules
    assert not modules & {
        "onnxruntime",
        "packetgate.reflex.fit",
        "packetgate.reflex.values.filling",
        "packetgate.reflex.meaning.encoder",
    }
