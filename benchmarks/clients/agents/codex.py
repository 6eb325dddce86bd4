"""Run the coding agent Codex: `codex exec`, which asks no questions, and the interactive `codex`."""

import json
from functools import partial

from benchmarks.clients.agents.agent import Agent, Bench, Dialog
from benchmarks.clients.agents.forms import MODEL
from benchmarks.clients.agents.model import REQUEST
from benchmarks.clients.place import from_npm


def start(bench: Bench, *words: str) -> tuple[list[str], dict[str, str]]:
    """Configure Codex, and return its command and variables."""
    command, *arguments = bench.proxy
    lines = [f'model = "{MODEL}"', 'model_provider = "scripted"', 'sandbox_mode = "read-only"']
    lines += ['approval_policy = "on-request"', "check_for_update_on_startup = false"]
    lines += ["[model_providers.scripted]", 'name = "Scripted"', f'base_url = "{bench.origin}/v1"']
    lines += ['env_key = "ANY_KEY"', 'wire_api = "responses"', "[mcp_servers.packetgate]"]
    lines += [f"command = {json.dumps(command)}", f"args = {json.dumps(arguments)}"]
    # Without these settings, Codex omits a server from the first turn if it takes longer than a second to start, and
    # `exec` refuses every tool that may change something.
    lines += ["required = true", 'default_tools_approval_mode = "approve"']
    lines += [f"[projects.{json.dumps(str(bench.work))}]", 'trust_level = "trusted"', ""]
    (bench.home / "config.toml").write_text("\n".join(lines))
    program = str(bench.installed / "node_modules" / ".bin" / "codex")
    return [program, *words, REQUEST], {"CODEX_HOME": str(bench.home), "ANY_KEY": "none"}


PACKAGE = "@openai/codex"
CODEX_EXEC = Agent(
    "codex exec",
    f"npm {PACKAGE}",
    partial(from_npm, PACKAGE),
    lambda bench: start(bench, "exec", "--skip-git-repo-check"),
)
CODEX_INTERACTIVE = Agent(
    "codex interactive",
    f"npm {PACKAGE}",
    partial(from_npm, PACKAGE),
    start,
    dialogs=(Dialog(r"Allow counter", "\r"),),
    ends=False,
)
