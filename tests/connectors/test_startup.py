"""The imports of a command, which account for most of its start-up time."""

import subprocess

import pytest
from support.command_line import COMMAND, CommandLine

SERVERS = {"fastmcp", "mcp", "mcp_types", "starlette", "uvicorn", "jsonschema"}
MODELS = {"openai", "langchain_openai", "llama_cpp"}
ENCODERS = {
    *("onnxruntime", "packetgate.reflex.fit", "packetgate.reflex.values.filling", "packetgate.reflex.meaning.encoder")
}


def loaded(cli: CommandLine, *words: str) -> set[str]:
    """Return the modules that a command imports in a new process."""
    environment = {**cli.environment, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        [str(COMMAND), *words], cwd=cli.folder, env=environment, capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("request_words", ["hello", "Read plan.txt"])
def test_a_command_imports_only_what_its_turn_uses(cli: CommandLine, request_words: str) -> None:
    modules = loaded(cli, "ask", request_words)
    assert {"langgraph", "packetgate.reflex.intent"} <= modules
    assert not modules & (SERVERS | MODELS)
    assert not modules & {"packetgate.deciders.language.selection", "packetgate.models.stripping"}
    assert bool(modules & ENCODERS) is (request_words != "hello")
