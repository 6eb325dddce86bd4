"""`packetgate doctor --models`: each model loaded, asked, and how it did."""

import json
import re
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.gguf_model import write_tiny_gguf
from support.packets import FILES
from support.prompts import BROKEN, offered, review
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Raw, Reply, Thinks
from support.tool_specs import a_tool
from support.tricky_schemas import SCHEMAS

from packetgate.connectors.terminal.doctor import exit_status, probed
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.tools.catalogue.catalogue import Catalogue

ABOUT = "It is about plans."
CALLED = '<tool_call>{"name": "ai__read", "arguments": {"path": "README.md"}}</tool_call>'


def test_a_model_in_this_process(llama_cpp_installed: None, cli: CommandLine, tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "terse.gguf", terse=True, seed=6)
    done = cli.run("doctor", "--models", "--lite", f"llamacpp:{path}?n_ctx=16384&seed=1")
    assert done.status == 0, done.out + done.err
    rows = _rows(done.out)
    assert rows["lite, prime"].startswith("ok: terse.gguf in llama.cpp, ready in ")
    assert rows["context"].startswith("ok: 16,384 tokens of the 32,768 it was trained on")
    assert rows["template"] == "ok: the file's own"
    for stage in ("selection", "review"):
        assert rows[stage].startswith("ok: usable, held to its form by a grammar; ")
    assert rows["answer"].startswith("ok: usable; ")
    assert "prompt tokens/s" in rows["speed"]
    assert "answer tokens/s" in rows["speed"]
    assert re.fullmatch("ok: selection by (token_probability|calibrated), review by calibrated", rows["confidence"])


async def test_what_a_user_should_know_of_a_file_and_of_tools(llama_cpp_installed: None, tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "plain.gguf", terse=True, seed=6, template=None)
    settings = Settings(lite=f"llamacpp:{path}?seed=1", root=tmp_path, home=tmp_path)
    strange = Catalogue([a_tool("codes.check", schema=SCHEMAS["lookaround"]), a_tool("codes.list")])
    [found] = [one async for one in probed(settings, strange, RoutingContext())]
    notes = {one.what.strip(): one.how for one in found if one.verdict == "note"}
    assert notes["template"].startswith("ChatML, because the file has none")
    assert notes["only validated"] == "nothing holds the model to the schema of codes.check"


async def test_a_model_that_cannot_be_asked_is_described_all_the_same(tiny_gguf: Path, tmp_path: Path) -> None:
    settings = Settings(lite=f"llamacpp:{tiny_gguf}?n_ctx=256", root=tmp_path, home=tmp_path)
    [found] = [one async for one in probed(settings, FILES, RoutingContext())]
    assert found[2].how.startswith("256 tokens of the 32,768")
    assert (found[-1].verdict, found[-1].what) == ("bad", "lite, prime")
    assert "too long" in found[-1].how
    assert exit_status(found) == 2


def test_one_model_that_is_missing_and_one_that_answers_nonsense(
    cli: CommandLine, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(ABOUT, BROKEN, BROKEN, review(0.9))
    url = scripted_openai.base_url
    done = cli.run("doctor", "--models", "--lite", "llamacpp:no.gguf", "--prime", "openai:small", OPENAI_BASE_URL=url)
    assert done.status == 2
    rows = _rows(done.out)
    assert rows["lite"].startswith("bad: no model file at no.gguf")
    assert rows["prime"].startswith("ok: small at ")
    assert rows["selection"].startswith("note: not usable, reflexes stand in: ")
    assert rows["confidence"].startswith("note: selection unknown, review by stated")


def test_a_model_behind_a_server_and_no_tool_server_that_answers(
    cli: CommandLine, scripted_openai: ScriptedOpenAI
) -> None:
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"gone": {"command": "no-such-program"}}}))
    texts = [ABOUT, CALLED, review(0.9)]
    scripted_openai.script(*(Thinks(700, text) for text in texts))
    done = cli.run("doctor", "--models", "--lite", "openai:small", OPENAI_BASE_URL=scripted_openai.base_url)
    assert done.status == 1
    rows = _rows(done.out)
    assert rows["gone"].startswith("bad: ")
    assert rows["lite, prime"].startswith(f"ok: small at {scripted_openai.base_url}")
    assert rows["selection"].startswith("ok: usable, held to its form by the server's tool calling; 6")
    assert "tokens of thoughts; " in rows["answer"]
    assert rows["thoughts"].startswith("ok: up to 6")
    assert "reasoning_effort=low" in rows["thoughts"]
    assert rows["confidence"].startswith("note: selection unknown, review by stated")
    assert "prompt tokens included" in rows["speed"]
    assert "ai__read" in offered(scripted_openai, 1)


def test_reflexes_are_no_model_to_examine(cli: CommandLine) -> None:
    done = cli.run("doctor", "--models")
    assert done.status == 0
    assert "there is no model to examine" in _rows(done.out)["lite, prime"]


def probable(probability: float, call: str = "call_1") -> Raw:
    answer = {"name": call, "type": "predicate", "probability": probability}
    return Raw(json.dumps({"model": "d", "answers": [answer], "usage": {"input_tokens": 7}}))


@pytest.mark.parametrize(
    ("reply", "status", "verdict", "told"),
    [
        (probable(0.93), 0, "ok", "0.93 that ai.read should run"),
        (probable(0.6), 0, "note", "0.60 that ai.read should run"),
        (probable(0.2), 0, "note", "0.20 that ai.read should run"),
        (probable(0.9, call="other"), 2, "bad", "d answered none of the questions, or with no probability"),
        (Raw("{}"), 2, "bad", "(calls count 0.0 until it answers)"),
        (HttpError(404), 2, "bad", "HTTP 404"),
        (HttpError(401), 2, "bad", "check PACKETGATE_PRIME_API_KEY"),
    ],
)
def test_an_endpoint_that_reviews(
    reply: Reply, status: int, verdict: str, told: str, cli: CommandLine, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(reply)
    reviewing = {"PACKETGATE_PRIME_BASE_URL": scripted_openai.base_url, "PACKETGATE_PRIME_API_KEY": "sk-for-decisions"}
    done = cli.run("doctor", "--models", "--prime", "decisions:d", **reviewing)
    assert done.status == status, done.out + done.err
    rows = _rows(done.out)
    assert rows["question" if status == 0 else "reviewer"].startswith(f"{verdict}: ")
    assert told in rows["question" if status == 0 else "reviewer"]
    assert ("so it would run" in done.out) == (verdict == "ok")
    (asked,) = scripted_openai.requests
    assert "Read the file README.md" in json.dumps(asked)


def _rows(out: str) -> dict[str, str]:
    """Return `verdict: how` of each finding by what it is about, its lines put together again."""
    rows: dict[str, str] = {}
    for line in out.splitlines():
        verdict, what, how = line[:6].strip(), line[6:22].strip(), line[22:].strip()
        if verdict:
            rows[what] = f"{verdict}: {how}"
        else:
            rows[[*rows][-1]] += f" {how}"
    return rows
