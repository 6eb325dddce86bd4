"""Drive the command-line client `llm`, which stores conversations itself and continues them with `-c`."""

from collections.abc import Iterator, Sequence
from functools import partial

import yaml

from benchmarks.clients.client import Client, replied
from benchmarks.clients.place import Place, from_pypi, run


def drive(place: Place) -> Iterator[tuple[str, bool | str]]:
    """Yield the result of each feature."""
    program = str(place.installed / "bin" / "llm")
    home = place.folder / "llm"
    home.mkdir()
    variables = {"LLM_USER_PATH": str(home), "OPENAI_API_KEY": "none"}
    with place.serve() as url:
        entry = {"model_id": "packetgate", "model_name": "packetgate", "api_base": url}
        (home / "extra-openai-models.yaml").write_text(yaml.safe_dump([entry]))

        def say(words: str, options: Sequence[str] = ()) -> str:
            return run([program, "-m", "packetgate", *options, words], place.work, variables)

        first = say("What does plan.txt say?", ["--system", "Speak like a pirate."])
        yield "answer", "Call Ann" in first or first
        yield "system prompt", place.model.has_system_words("Speak like a pirate.")
        second = say("And what does later.txt say?", ["-c"])
        yield "second turn", ("Water the plants" in second and place.sessions() == 1) or second
        yield from replied(place, partial(say, options=("-c",)))


LLM = Client("llm", "PyPI llm", lambda folder: from_pypi("llm", folder), drive)
