"""Run the coding agent opencode as `opencode run`."""

import json
from functools import partial

from benchmarks.clients.agents.agent import Agent, Bench
from benchmarks.clients.agents.forms import MODEL
from benchmarks.clients.agents.model import REQUEST
from benchmarks.clients.place import from_npm


def start(bench: Bench) -> tuple[list[str], dict[str, str]]:
    """Configure opencode, and return its command and variables."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{bench.origin}/v1", "apiKey": "none"},
        "models": {MODEL: {"name": MODEL, "tool_call": True}},
    }
    config = {
        "provider": {"scripted": provider},
        "model": f"scripted/{MODEL}",
        "share": "disabled",
        "mcp": {"packetgate": {"type": "local", "command": bench.proxy}},
    }
    (bench.home / "opencode.json").write_text(json.dumps(config))
    variables = {"OPENCODE_CONFIG": str(bench.home / "opencode.json"), "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    program = str(bench.installed / "node_modules" / ".bin" / "opencode")
    return [program, "run", *REQUEST.split()], variables | {"OPENCODE_DISABLE_MODELS_FETCH": "1"}


PACKAGE = "opencode-ai"
OPENCODE = Agent("opencode", f"npm {PACKAGE}", partial(from_npm, PACKAGE), start)
