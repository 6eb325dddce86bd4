"""Drive real chat clients against Packetgate: each is installed into a folder of its own, and a scripted model answers.

Asked of each: a first and a second turn, a write that waits for approval, the client's own tools and system prompt, and
its background prompts. A client that cannot be installed says so.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.clients.agent_chat_ui import AGENT_CHAT_UI
from benchmarks.clients.client import FEATURES, Client, checked
from benchmarks.clients.codex import CODEX
from benchmarks.clients.llm_client import LLM
from benchmarks.clients.model import serve_model
from benchmarks.clients.open_webui import OPEN_WEBUI
from benchmarks.clients.openai_client import OPENAI
from benchmarks.clients.opencode import OPENCODE
from benchmarks.clients.place import FILES, Place, UnavailableError

CLIENTS: tuple[Client, ...] = (OPEN_WEBUI, OPENCODE, CODEX, OPENAI, LLM, AGENT_CHAT_UI)


def measure(client: Client, installed: Path) -> dict[str, Any]:
    """Return what works of one client."""
    told: dict[str, Any] = {"name": client.name, "from": client.package}
    try:
        told["version"] = client.install(installed)
    except UnavailableError as error:
        return told | {"unavailable": str(error)}
    with tempfile.TemporaryDirectory() as folder, serve_model() as model:
        work = Path(folder, "work")
        work.mkdir()
        for name, text in FILES.items():
            (work / name).write_text(text)
        return told | {"features": checked(client.drive(Place(Path(folder), work, installed, model)))}


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.clients", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--client", action="append", choices=[one.name for one in CLIENTS], help="only this one")
    parser.add_argument("--folder", type=Path, help="where clients are installed and kept; by default they are removed")
    parser.add_argument("--json", action="store_true", help="print JSON, one line a client")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        for client in CLIENTS:
            if given.client and client.name not in given.client:
                continue
            folder = (given.folder or Path(temporary)).resolve() / client.name.replace(" ", "-").lower()
            _show(measure(client, folder), as_json=given.json)


def _show(told: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(told), flush=True)
        return
    print(f"{told['name']} {told.get('version', '')} ({told['from']})", flush=True)
    if "unavailable" in told:
        print(f"  cannot be had: {told['unavailable']}", flush=True)
    for name, works in told.get("features", {}).items():
        print(f"  {FEATURES.get(name, name)}: {works}", flush=True)


if __name__ == "__main__":
    main()
