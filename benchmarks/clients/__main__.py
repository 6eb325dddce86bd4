"""Drive real chat clients against Packetgate. Each is installed into its own folder, and a scripted model answers.

Each client runs two turns and a write that waits for approval. It also sends its own tools, system prompt and
background prompts. For a client that cannot be installed, the benchmark prints the reason.

With --agents, drive agents behind `packetgate proxy` instead: codex, opencode, gemini-cli, the OpenAI Agents SDK,
pydantic-ai, LangChain, mcp-use and smolagents. Each agent sets a context and reads a counter in a server's memory.
After a person's approval, it adds to the counter and reads it again. The benchmark prints:

- whether the task succeeds, or the first failure
- where the agent or the proxy asked the person
- how often the agent called the write, how often the write ran, and in how many server processes
- the seconds from the first call of the write to its result
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.clients.agent_chat_ui import AGENT_CHAT_UI
from benchmarks.clients.agents.agent import FIGURES, Agent
from benchmarks.clients.agents.agent import measure as measure_agent
from benchmarks.clients.agents.codex import CODEX_EXEC, CODEX_INTERACTIVE
from benchmarks.clients.agents.gemini_cli import GEMINI_CLI
from benchmarks.clients.agents.langchain_agent import LANGCHAIN, LANGCHAIN_WITHOUT_SESSION
from benchmarks.clients.agents.mcp_use import MCP_USE
from benchmarks.clients.agents.openai_agents import OPENAI_AGENTS
from benchmarks.clients.agents.opencode import OPENCODE as OPENCODE_AGENT
from benchmarks.clients.agents.pydantic_ai import PYDANTIC_AI
from benchmarks.clients.agents.smolagents import SMOLAGENTS
from benchmarks.clients.client import FEATURES, Client, checked
from benchmarks.clients.codex import CODEX
from benchmarks.clients.llm_client import LLM
from benchmarks.clients.model import serve_model
from benchmarks.clients.open_webui import OPEN_WEBUI
from benchmarks.clients.openai_client import OPENAI
from benchmarks.clients.opencode import OPENCODE
from benchmarks.clients.place import FILES, Place, UnavailableError
from benchmarks.command_line import command_parser

CLIENTS: tuple[Client, ...] = (OPEN_WEBUI, OPENCODE, CODEX, OPENAI, LLM, AGENT_CHAT_UI)
AGENTS: tuple[Agent, ...] = (
    *(CODEX_EXEC, CODEX_INTERACTIVE, OPENCODE_AGENT, GEMINI_CLI),
    *(OPENAI_AGENTS, PYDANTIC_AI, LANGCHAIN, LANGCHAIN_WITHOUT_SESSION, MCP_USE, SMOLAGENTS),
)


def measure(client: Client, installed: Path) -> dict[str, Any]:
    """Return the result of each feature of one client."""
    outcome: dict[str, Any] = {"name": client.name, "from": client.package}
    try:
        outcome["version"] = client.install(installed)
    except UnavailableError as error:
        return outcome | {"unavailable": str(error)}
    with tempfile.TemporaryDirectory() as folder, serve_model() as model:
        work = Path(folder, "work")
        work.mkdir()
        for name, text in FILES.items():
            (work / name).write_text(text)
        return outcome | {"features": checked(client.drive(Place(Path(folder), work, installed, model)))}


def main(words: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.clients", __doc__)
    names = [*(one.name for one in CLIENTS), *(one.name for one in AGENTS)]
    parser.add_argument("--agents", action="store_true", help="drive the agents instead of the chat clients")
    parser.add_argument("--client", action="append", choices=[*dict.fromkeys(names)], help="only this client or agent")
    parser.add_argument("--folder", type=Path, help="folder to install clients into; by default a temporary folder")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per client")
    args = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        chosen: tuple[Agent | Client, ...] = AGENTS if args.agents else CLIENTS
        for one in chosen:
            if args.client and one.name not in args.client:
                continue
            folder = (args.folder or Path(temporary)).resolve() / one.package.rpartition(" ")[2].rpartition("/")[2]
            outcome = measure_agent(one, folder) if isinstance(one, Agent) else measure(one, folder)
            _show(outcome, as_json=args.json)


def _show(outcome: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(outcome), flush=True)
        return
    print(f"{outcome['name']} {outcome.get('version', '')} ({outcome['from']})", flush=True)
    if "unavailable" in outcome:
        print(f"  is not available: {outcome['unavailable']}", flush=True)
    figures = {name: outcome[name] for name in outcome if name in FIGURES}
    for name, works in (outcome.get("features", {}) | figures).items():
        print(f"  {(FEATURES | FIGURES).get(name, name)}: {works}", flush=True)


if __name__ == "__main__":
    main()
