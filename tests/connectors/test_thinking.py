"""Models that think, and endpoints that fail, as somebody meets them who asks."""

import json

import pytest
from support.command_line import CommandLine, Outcome
from support.prompts import review
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Reply, Stall, Thinks

CALL = {"tool": "ai.read", "params": {"path": "plan.txt"}}
SELECTION = json.dumps({"action": "call", "calls": [CALL], "complete": True})
STAGES = (SELECTION, review(0.9), "It opens at seven.")


def ask(cli: CommandLine, server: ScriptedOpenAI, model: str = "openai:small", **variables: str) -> Outcome:
    request = "When does the gate of plan.txt open?"
    return cli.run("ask", request, "--lite", model, OPENAI_BASE_URL=server.base_url, **variables)


@pytest.mark.parametrize("tokens", [50, 500, 5_000])
def test_a_plain_read_needs_no_approval_however_long_it_thinks(
    tokens: int, cli: CommandLine, scripted_openai: ScriptedOpenAI
):
    again = [Thinks(tokens, STAGES[0])] if tokens > 2_000 else []
    scripted_openai.script(*again, *(Thinks(tokens, text) for text in STAGES))
    done = ask(cli, scripted_openai)
    assert done.status == 0, done.out + done.err
    assert "It opens at seven." in done.out
    assert "stood in" not in done.out
    assert len(scripted_openai.requests) == len(STAGES) + len(again)


@pytest.mark.parametrize(
    ("reply", "told", "variables"),
    [
        (Stall(), "did not answer in time: raise PACKETGATE_MODEL_TIMEOUT", {"PACKETGATE_MODEL_TIMEOUT": "1"}),
        (Stall(drip=True), "did not answer in time: raise", {"PACKETGATE_LITE_TIMEOUT": "1"}),
        (Stall(drip=True), "a turn waits 1 s for its models: raise turn_budget_s", {"PACKETGATE_TURN_BUDGET_S": "1"}),
        (HttpError(429, "slow", retry=True, retry_after="3600"), "left alone for 3,600 s: wait, or use another", {}),
        (HttpError(401, "no"), "refuses the API key (HTTP 401): check OPENAI_API_KEY", {}),
        (
            HttpError(401, "no"),
            "refuses the API key (HTTP 401): check PACKETGATE_LITE_API_KEY",
            {"PACKETGATE_LITE_API_KEY": "sk-mine-and-only-mine"},
        ),
        (Thinks(90_000, "never"), "was cut off in its thoughts", {"PACKETGATE_LITE_THINKING_BUDGET": "700"}),
    ],
)
def test_an_endpoint_that_fails_is_asked_once_and_told_once(
    reply: Reply, told: str, variables: dict[str, str], cli: CommandLine, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script(*[reply] * 9)
    done = ask(cli, scripted_openai, **variables)
    assert done.status == 3, done.out + done.err  # nobody reviewed, so the user is asked
    assert len(scripted_openai.requests) == 1
    problems = " ".join(done.out.split()).split("! ")[1:]
    assert len(problems) == 2
    assert told in problems[0]
    assert problems[1].startswith("the review failed: small at")
    assert "was not asked again in this turn" in problems[1]
    assert "only-mine" not in done.out + done.err


def test_options_of_the_file_and_of_the_name(cli: CommandLine, scripted_openai: ScriptedOpenAI):
    (cli.folder / "packetgate.toml").write_text('[models.lite]\nreasoning_effort = "high"\nseed = 3\n')
    scripted_openai.script(*STAGES[:2], "I am done.", STAGES[2])
    done = ask(cli, scripted_openai, "openai:small?reasoning_effort=low", PACKETGATE_PRIME_TEMPERATURE="0")
    assert done.status == 0, done.out + done.err
    assert {request["reasoning_effort"] for request in scripted_openai.requests} == {"low"}
    assert [request.get("seed") for request in scripted_openai.requests] == [3, None, 3, None]
    assert [request["temperature"] for request in scripted_openai.requests] == [0.15, 0.0, 0.15, 0.0]
    shown = json.loads(cli.run("settings", "--json", "--lite", "openai:small?seed=1").out)["models"]
    assert {"name": "models.lite.seed", "value": 1, "from": "openai:small: seed"} in shown


def test_an_option_that_there_is_not(cli: CommandLine, scripted_openai: ScriptedOpenAI):
    (cli.folder / "packetgate.toml").write_text('[models.lite]\nreasoning = "high"\n')
    done = ask(cli, scripted_openai)
    assert (done.status, done.out) == (2, "")
    assert "packetgate.toml: models.lite.reasoning: no option 'reasoning' here: did you mean" in done.err


def test_an_option_that_the_server_refuses_is_told_with_its_place(cli: CommandLine, scripted_openai: ScriptedOpenAI):
    scripted_openai.refuses = {"seed": HttpError(400, "Unsupported parameter: 'seed'", param="seed")}
    done = ask(cli, scripted_openai, PACKETGATE_LITE_SEED="3")
    assert "seed is set at PACKETGATE_LITE_SEED: change it, or leave it out" in " ".join(done.out.split())
    done = ask(cli, scripted_openai, "openai:small?seed=3")
    assert "seed is set at openai:small: seed: change it, or leave it out" in " ".join(done.out.split())


def test_what_is_refused_and_was_nobodys_wish_is_not_heard_of(cli: CommandLine, scripted_openai: ScriptedOpenAI):
    said = "Invalid schema for response_format 'review': 'maxLength' is not permitted."
    scripted_openai.refuses = {name: HttpError(400, param=name) for name in ("temperature", "top_p", "stream_options")}
    scripted_openai.refuses["response_format.json_schema"] = HttpError(400, said, param="response_format")
    scripted_openai.script(*STAGES)
    done = ask(cli, scripted_openai)
    assert (done.status, done.err) == (0, ""), done.out + done.err
    assert "It opens at seven." in done.out
