"""Models behind the command line: an OpenAI-compatible endpoint, a GGUF file with random weights, embeddings."""

import json
from pathlib import Path

from support.command_line import CommandLine
from support.prompts import BROKEN
from support.scripted_openai import ScriptedOpenAI

from packetgate.state.packet import read_packet
from packetgate.state.routing import Risk
from packetgate.state.transitions import ToolExecutionStatus

CALL = {"tool": "ai.read", "params": {"path": "plan.txt"}}
SELECTION = json.dumps({"action": "call", "calls": [CALL], "complete": True})
REVIEW = json.dumps({"reviews": {"1": {"approved": True, "confidence": 0.9, "reasoning": "fine"}}})


def test_a_model_decides_all_but_the_intent(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(SELECTION, REVIEW, "It opens at seven. <tool_call>{}</tool_call>")
    url = scripted_openai.base_url
    done = cli.run(
        "ask", "--json", "--lite", "openai:small", "When does the gate of plan.txt open?", OPENAI_BASE_URL=url
    )
    assert done.status == 0, done.err
    packet = read_packet(done.out)
    assert packet.response.candidate == "It opens at seven."
    assert packet.metrics.violations == 1
    assert packet.routing.execution_status is ToolExecutionStatus.EXECUTED
    decided = {entry.step: entry.decided_by for entry in packet.reasoning.reflection_log if entry.decided_by}
    assert {step for step, by in decided.items() if by == "model"} == {"select_tool", "review_selection", "respond"}
    assert not any(entry.is_fallback for entry in packet.reasoning.reflection_log)
    assert sum(usage.input_tokens for usage in packet.metrics.token_usage.values()) > 0
    temperatures = [request["temperature"] for request in scripted_openai.requests]
    assert temperatures[:2] == [0.15, 0.3]


def test_packetgate_toml_names_the_model_unless_something_else_does(
    cli: CommandLine, scripted_openai: ScriptedOpenAI
) -> None:
    """Ollama's server gets no key that is meant for another, and options beside a model are that model's."""
    (cli.folder / "packetgate.toml").write_text('[models.lite]\nmodel = "ollama:small"\nseed = 3\n')
    scripted_openai.models, host = ["small:latest"], scripted_openai.base_url.removesuffix("/v1")
    keys = {"OLLAMA_HOST": host, "OPENAI_API_KEY": "of-another", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    scripted_openai.script(SELECTION, REVIEW, "It opens at seven.")
    done = cli.run("ask", "--json", "When does the gate of plan.txt open?", **keys)
    assert done.status == 0, done.err
    assert read_packet(done.out).response.candidate == "It opens at seven."
    assert {one["seed"] for one in scripted_openai.requests} == {3}
    assert {one["authorization"] for one in scripted_openai.headers} == {"Bearer none"}

    rows = {one["name"]: one for one in json.loads(cli.run("settings", "--json").out)["models"]}
    assert rows["models.lite.model"]["value"] == "ollama:small"
    assert rows["models.lite.model"]["from"] == "packetgate.toml: models.lite.model"
    other = json.loads(cli.run("settings", "--json", "--lite", "llamacpp:a.gguf").out)["models"]
    assert [one["name"] for one in other] == ["models.lite.model", "models.prime.model"]
    (cli.folder / "packetgate.toml").write_text("[models.lite]\nmodel = 3\n")
    assert "models.lite.model: it takes a model's name, such as \"ollama:" in cli.run("ask", "Hello").err


def test_reflexes_stand_in_visibly(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    """Selection falls back, the gate does not."""
    scripted_openai.script(BROKEN, BROKEN, REVIEW, "It opens at seven.")
    done = cli.run("ask", "--lite", "openai:small", "Read plan.txt", OPENAI_BASE_URL=scripted_openai.base_url)
    assert done.status == 0, done.err
    assert "It opens at seven." in done.out
    assert "rule-based fallback" in done.out


def test_the_worst_model_there_is_stays_safe(cli: CommandLine, tiny_gguf: Path) -> None:
    """Random weights, writes switched on, nobody to ask: nothing that was not approved is done."""
    before = sorted(path.name for path in cli.folder.iterdir())
    done = cli.run("ask", "--json", "--allow-writes", "--lite", f"llamacpp:{tiny_gguf}", 'Write "x" to y.txt')
    assert done.status in {0, 3}, done.err
    packet = read_packet(done.out)
    ran = [call for call in packet.routing.all_calls if call.status is ToolExecutionStatus.EXECUTED]
    assert all(call.risk is Risk.READ for call in ran), "a review of chance may let a read run, and no more"
    assert sorted(path.name for path in cli.folder.iterdir()) == before
    assert "review_selection" in packet.metrics.token_usage, "it judged the call"


def test_search_says_that_it_used_embeddings(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    url = scripted_openai.base_url
    request = "Use embedding.query to search for milk"
    done = cli.run("ask", request, PACKETGATE_EMBEDDINGS="openai:vectors", OPENAI_BASE_URL=url)
    assert done.status == 0, done.err
    assert "by meaning, with embeddings" in done.out
    assert "todo.txt" in done.out
    assert "by words" in cli.run("ask", request).out
