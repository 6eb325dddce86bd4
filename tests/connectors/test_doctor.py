"""`packetgate doctor` checks the configuration, servers and, with `--models`, each model."""

import json
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.gguf_model import write_tiny_gguf
from support.prompts import BROKEN, offered, review
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Raw, Reply, Thinks

from packetgate.connectors.terminal.doctor import exit_status, probe_models
from packetgate.graph.settings import Settings

ABOUT = "It is about plans."
CALLED = '<tool_call>{"name": "ai__read", "arguments": {"path": "README.md"}}</tool_call>'


def doctor(cli: CommandLine, *args: str, **variables: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Return the exit status, and the last finding (verdict, text) by subject."""
    done = cli.run("doctor", "--json", *args, **variables)
    assert done.out, done.err
    return done.status, {one["what"]: (one["verdict"], one["how"]) for one in json.loads(done.out)}


def test_everything_is_ok_out_of_the_box(cli: CommandLine) -> None:
    done = cli.run("doctor")
    assert done.status == 0
    assert "reflex (no model)" in done.out
    assert str(cli.home / "packetgate.db") in done.out.replace("\n", "")


def test_missing_programs_servers_and_models_are_named(cli: CommandLine) -> None:
    servers = {"gone": {"command": "no-such-program"}, "sick": {"command": "sh", "args": ["-c", "echo no token >&2"]}}
    (cli.folder / "mcp.json").write_text(json.dumps({"builtin": True, "mcpServers": servers}))
    status, found = doctor(cli, "--lite", "llamacpp:no.gguf")
    assert status == 1
    assert "'no-such-program' is not installed" in found["gone"][1]
    assert found["ai"] == ("ok", "13 tools")
    assert "no token" not in found["sick"][1], "the output of a server goes only to its log"
    assert "no token" in (cli.home / "logs" / "sick.log").read_text()
    assert found["models"][0] == "bad"
    assert "no.gguf" in found["models"][1]


def test_the_sandbox_is_described(cli: CommandLine) -> None:
    assert doctor(cli)[1]["sandbox"][0] in {"ok", "note"}
    (cli.folder / "packetgate.toml").write_text('sandbox = "off"\n')
    assert doctor(cli)[1]["sandbox"][0] == "note"


@pytest.mark.parametrize("table", ["colour = 1", "[setings]\nenabled = false", "[settings]\nconfidence_threshold = 9"])
def test_each_unusable_file_is_one_finding(cli: CommandLine, table: str) -> None:
    (cli.folder / "packetgate.toml").write_text(table)
    (cli.folder / "mcp.json").write_text("[]")
    done = cli.run("doctor", "--json")
    bad = [one["how"] for one in json.loads(done.out) if one["verdict"] == "bad"]
    assert done.status == 1
    assert sorted(how.partition(":")[0] for how in bad) == ["mcp.json", "packetgate.toml"]


def test_patterns_and_rules_that_match_nothing_are_notes(cli: CommandLine) -> None:
    preferences = 'permanent = ["ai.raed"]\n[[policy.rules]]\neffect = "deny"\ntool = "ai.wrte"\n'
    (cli.folder / "packetgate.toml").write_text(preferences)
    done = cli.run("doctor", "--json")
    assert done.status == 0
    notes = [one["how"] for one in json.loads(done.out) if one["verdict"] == "note" and one["what"] == "preferences"]
    places = [how.split(": ")[1] for how in notes]
    assert places == ["permanent", "policy.rules.0"]
    assert "\n! packetgate.toml: permanent: 'ai.raed'" in cli.run("tools").out


def test_a_local_model_is_tried(llama_cpp_installed: None, cli: CommandLine, tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "terse.gguf", terse=True, seed=6)
    status, found = doctor(cli, "--models", "--lite", f"llamacpp:{path}?n_ctx=16384&seed=1")
    assert status == 0
    assert found["lite, prime"][1].startswith("terse.gguf in llama.cpp, ready in ")
    assert found["context"][1].startswith("16,384 tokens of 32,768")
    assert found["template"] == ("ok", "the file's own")
    for stage in ("selection", "review"):
        assert "enforced by grammar" in found[stage][1]
    assert "prompt tokens/s" in found["speed"][1]
    assert found["confidence"][0] == "ok"


async def test_a_short_context_and_a_missing_template_are_reported(llama_cpp_installed: None, tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "plain.gguf", terse=True, seed=6, template=None)
    settings = Settings(lite=f"llamacpp:{path}?n_ctx=256", root=tmp_path, home=tmp_path)
    found = [one async for one in probe_models(settings)]
    assert {"template": "note", "context": "ok"}.items() <= {one.subject: one.verdict for one in found}.items()
    assert (found[-1].verdict, found[-1].subject) == ("bad", "lite, prime")
    assert exit_status(found) == 2


def test_missing_and_unusable_models_are_reported(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(ABOUT, BROKEN, BROKEN, review(0.9))
    models = ("--lite", "llamacpp:no.gguf", "--prime", "openai:small")
    status, found = doctor(cli, "--models", *models, OPENAI_BASE_URL=scripted_openai.base_url)
    assert status == 2
    assert found["lite"][0] == "bad"
    assert found["prime"][1].startswith("small at ")
    assert found["selection"][0] == "note"
    assert found["confidence"][0] == "note"
    assert found["confidence"][1].endswith("review: stated")


def test_the_thoughts_of_an_endpoints_model_are_reported(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(*(Thinks(700, text) for text in [ABOUT, CALLED, review(0.9)]))
    status, found = doctor(cli, "--models", "--lite", "openai:small", OPENAI_BASE_URL=scripted_openai.base_url)
    assert status == 0
    assert "enforced by tool_call" in found["selection"][1]
    assert "tokens of thoughts" in found["answer"][1]
    assert "reasoning_effort=low" in found["thoughts"][1]
    assert "the prompt included" in found["speed"][1]
    assert "ai__read" in offered(scripted_openai, 1)


def test_without_a_model_no_trial_runs(cli: CommandLine) -> None:
    status, found = doctor(cli, "--models")
    assert (status, found["lite, prime"][0]) == (0, "note")


def probable(probability: float, call: str = "call_1") -> Raw:
    answer = {"name": call, "type": "predicate", "probability": probability}
    return Raw(json.dumps({"model": "d", "answers": [answer], "usage": {"input_tokens": 7}}))


@pytest.mark.parametrize(
    ("reply", "status", "verdict", "names"),
    [
        (probable(0.93), 0, "ok", "0.93 that ai.read should run"),
        (probable(0.2), 0, "note", "0.20 that ai.read should run"),
        (probable(0.9, call="other"), 2, "bad", "d "),
        (HttpError(401), 2, "bad", "PACKETGATE_PRIME_API_KEY"),
    ],
)
def test_a_decision_endpoint_is_tried(
    reply: Reply, status: int, verdict: str, names: str, cli: CommandLine, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(reply)
    variables = {"PACKETGATE_PRIME_BASE_URL": scripted_openai.base_url, "PACKETGATE_PRIME_API_KEY": "sk-for-decisions"}
    done, found = doctor(cli, "--models", "--prime", "decisions:d", **variables)
    result = found["question" if status == 0 else "reviewer"]
    assert (done, result[0], names in result[1]) == (status, verdict, True), result
    assert len(scripted_openai.requests) == 1
