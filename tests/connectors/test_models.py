"""Models of the command line: endpoints that think or fail, GGUF files, options, embeddings."""

import json
from pathlib import Path

import pytest
from support.command_line import CommandLine, Outcome
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Reply, Stall, Thinks

from packetgate.state.packet import read_packet
from packetgate.state.routing import Risk
from packetgate.state.transitions import ToolExecutionStatus

CALL = {"tool": "ai.read", "params": {"path": "plan.txt"}}
SELECTION = json.dumps({"action": "call", "calls": [CALL], "complete": True})
REQUEST = "When does the gate of plan.txt open?"
STAGES = (SELECTION, "It opens at seven.")


def ask(cli: CommandLine, server: ScriptedOpenAI, model: str = "openai:small", **variables: str) -> Outcome:
    return cli.run("ask", REQUEST, "--lite", model, OPENAI_BASE_URL=server.base_url, **variables)


def test_long_thoughts_need_no_approval_for_a_read(cli: CommandLine, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(*(Thinks(5_000, text) for text in (STAGES[0], *STAGES)))
    done = ask(cli, scripted_openai)
    assert done.status == 0, done.out + done.err
    assert "It opens at seven." in done.out
    assert "stood in" not in done.out
    assert len(scripted_openai.requests) == len(STAGES) + 1


@pytest.mark.parametrize(
    ("reply", "told", "variables"),
    [
        (Stall(), "PACKETGATE_MODEL_TIMEOUT", {"PACKETGATE_MODEL_TIMEOUT": "1"}),
        (HttpError(401, "no"), "PACKETGATE_LITE_API_KEY", {"PACKETGATE_LITE_API_KEY": "sk-mine-and-only-mine"}),
        (Thinks(90_000, "never"), "was cut off while thinking", {"PACKETGATE_LITE_THINKING_BUDGET": "700"}),
    ],
)
def test_a_failing_endpoint_is_asked_once_and_named_once(
    reply: Reply, told: str, variables: dict[str, str], cli: CommandLine, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script(*[reply] * 9)
    failed = ask(cli, scripted_openai, **variables)
    assert told in failed.out + failed.err
    assert len(failed.err.splitlines()) <= 1
    assert failed.status == (0 if isinstance(reply, Thinks) else 2)
    scripted_openai.requests.clear()
    done = ask(cli, scripted_openai, **variables, PACKETGATE_FALLBACK="reflex")
    assert len(scripted_openai.requests) == 1
    assert scripted_openai.reviews == []
    assert told in " ".join(done.out.split())
    assert "only-mine" not in done.out + done.err


def test_options_of_the_file_and_of_the_name(cli: CommandLine, scripted_openai: ScriptedOpenAI):
    (cli.folder / "packetgate.toml").write_text('[models.lite]\nreasoning_effort = "high"\nseed = 3\n')
    scripted_openai.script(STAGES[0], "I am done.", STAGES[1])
    done = ask(cli, scripted_openai, "openai:small?reasoning_effort=low", PACKETGATE_PRIME_TEMPERATURE="0")
    assert done.status == 0, done.out + done.err
    assert {request["reasoning_effort"] for request in scripted_openai.requests} == {"low"}
    assert [request.get("seed") for request in scripted_openai.requests] == [3, 3, None]
    assert [request["temperature"] for request in scripted_openai.requests] == [0.15, 0.15, 0.0]
    shown = json.loads(cli.run("settings", "--json", "--lite", "openai:small?seed=1").out)
    assert ("models.lite.seed", 1, "openai:small: seed") in [(one["name"], one["value"], one["from"]) for one in shown]


def test_packetgate_toml_names_the_model(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    """Ollama's server gets no key of another endpoint, and the options next to a model apply to that model."""
    (cli.folder / "packetgate.toml").write_text('[models.lite]\nmodel = "ollama:small"\nseed = 3\n')
    scripted_openai.models, host = ["small:latest"], scripted_openai.base_url.removesuffix("/v1")
    keys = {"OLLAMA_HOST": host, "OPENAI_API_KEY": "of-another", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    scripted_openai.script(*STAGES)
    done = cli.run("ask", "--json", REQUEST, **keys)
    assert read_packet(done.out).response.candidate.startswith("It opens at seven."), done.err
    assert {one["seed"] for one in scripted_openai.requests} == {3}
    assert {one["authorization"] for one in scripted_openai.headers} == {"Bearer none"}
    rows = {one["name"]: one for one in json.loads(cli.run("settings", "--json").out)}
    named = rows["models.lite.model"]
    assert (named["value"], named["from"]) == ("ollama:small", "packetgate.toml: models.lite.model")


def test_random_weights_write_nothing(cli: CommandLine, tiny_gguf: Path) -> None:
    before = sorted(path.name for path in cli.folder.iterdir())
    done = cli.run("ask", "--json", "--allow-writes", "--lite", f"llamacpp:{tiny_gguf}", 'Write "x" to y.txt')
    assert done.status in {0, 3}, done.err
    packet = read_packet(done.out)
    ran = [call for call in packet.routing.all_calls if call.status is ToolExecutionStatus.EXECUTED]
    assert all(call.risk is Risk.READ for call in ran), "a review by chance may let a read run"
    assert sorted(path.name for path in cli.folder.iterdir()) == before
    assert packet.metrics.token_usage["select_tool"].output_tokens


def test_search_uses_embeddings(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    url = scripted_openai.base_url
    request = "Use embedding.query to search for milk"
    done = cli.run("ask", request, PACKETGATE_EMBEDDINGS="openai:vectors", OPENAI_BASE_URL=url)
    assert "by meaning, with embeddings" in done.out
    assert "todo.txt" in done.out
    assert "by words" in cli.run("ask", request).out
