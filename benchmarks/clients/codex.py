"""Drive the coding agent Codex as `codex exec`, which speaks only OpenAI's responses protocol."""

import json
from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.clients.client import Client, replied
from benchmarks.clients.place import Place, from_npm, run


def drive(place: Place) -> Iterator[tuple[str, bool | str]]:
    """Yield the result of each feature."""
    program = str(place.installed / "node_modules" / ".bin" / "codex")
    home = place.folder / "codex"
    home.mkdir()
    variables = {"CODEX_HOME": str(home), "HOME": str(home), "ANY_KEY": "none"}
    with place.serve() as url:
        lines = ['model = "packetgate"', 'model_provider = "packetgate"', 'sandbox_mode = "read-only"']
        lines += ["[model_providers.packetgate]", 'name = "Packetgate"', f"base_url = {json.dumps(url)}"]
        lines += ['env_key = "ANY_KEY"', 'wire_api = "responses"', ""]
        (home / "config.toml").write_text("\n".join(lines))

        def say(words: str, options: Sequence[str] = ()) -> str:
            return run([program, "exec", "--skip-git-repo-check", *options, words], place.work, variables)

        first = say("What does plan.txt say?")
        yield "answer", "Call Ann" in first or first
        yield "responses", "Call Ann" in first or first
        yield "client tools", "Call Ann" in first or first
        yield "system prompt", place.model.has_system_words("Codex")
        second = say("And what does later.txt say?", ["resume", "--last"])
        yield "second turn", ("Water the plants" in second and place.sessions() == 1) or second
        yield from replied(place, partial(say, options=("resume", "--last")))


CODEX = Client("codex", "npm @openai/codex", lambda folder: from_npm("@openai/codex", folder), drive)
