"""Drive the coding agent opencode as `opencode run`, which also requests a title."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial

from benchmarks.clients.client import Client, replied
from benchmarks.clients.model import TITLE
from benchmarks.clients.place import Place, from_npm, run


def drive(place: Place) -> Iterator[tuple[str, bool | str]]:
    """Yield the result of each feature."""
    program = str(place.installed / "node_modules" / ".bin" / "opencode")
    home = place.folder / "opencode"
    home.mkdir()
    variables = {"HOME": str(home), "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    variables |= {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_CONFIG": str(home / "opencode.json")}
    with place.serve() as url:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": url, "apiKey": "none"},
            "models": {"packetgate": {"name": "Packetgate"}},
        }
        config = {"provider": {"packetgate": provider}, "model": "packetgate/packetgate", "share": "disabled"}
        (home / "opencode.json").write_text(json.dumps(config))

        def say(words: str, options: Sequence[str] = ()) -> str:
            return run([program, "run", *options, *words.split()], place.work, variables)  # opencode quotes spaces

        first = say("What does plan.txt say?")
        yield "answer", "Call Ann" in first or first
        yield "client tools", "Call Ann" in first or first
        yield "system prompt", place.model.has_system_words("You are opencode")
        second = say("And what does later.txt say?", ["--continue"])
        yield "second turn", "Water the plants" in second or second
        yield from replied(place, partial(say, options=("--continue",)))
        with closing(sqlite3.connect(home / ".local" / "share" / "opencode" / "opencode.db")) as database:
            titles = [str(row[0]) for row in database.execute("SELECT title FROM session")]
        sessions = place.sessions()
        yield "background", (titles == [TITLE] and sessions == 1) or f"titles {titles}, {sessions} conversations"


OPENCODE = Client("opencode", "npm opencode-ai", lambda folder: from_npm("opencode-ai", folder), drive)
