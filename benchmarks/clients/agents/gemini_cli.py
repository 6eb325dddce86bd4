"""Run the coding agent gemini-cli as `gemini --prompt`, with a scripted endpoint in Google's protocol."""

import json
from functools import partial

from benchmarks.clients.agents.agent import Agent, Bench
from benchmarks.clients.agents.forms import GEMINI
from benchmarks.clients.agents.model import REQUEST
from benchmarks.clients.place import from_npm


def start(bench: Bench) -> tuple[list[str], dict[str, str]]:
    """Configure gemini-cli, and return its command and variables."""
    command, *arguments = bench.proxy
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "mcpServers": {"packetgate": {"command": command, "args": arguments, "trust": True}},
    }
    folder = bench.home / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings))
    program = str(bench.installed / "node_modules" / ".bin" / "gemini")
    variables = {"GOOGLE_GEMINI_BASE_URL": bench.origin, "GEMINI_API_KEY": "none", "NO_BROWSER": "1"}
    return [program, "--model", GEMINI, "--prompt", REQUEST], variables


PACKAGE = "@google/gemini-cli"
GEMINI_CLI = Agent("gemini-cli", f"npm {PACKAGE}", partial(from_npm, PACKAGE), start)
