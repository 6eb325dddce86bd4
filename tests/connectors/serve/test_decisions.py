"""`/v1/decisions` and `/v1/systemone`: reviews by a hosted one's stand-in, and a GGUF behind the real command."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core._api import suppress_langchain_beta_warning
from langchain_openai.decisions import Choice, OpenAIDecisions, Predicate, Score
from support.command_line import CommandLine
from support.endpoints import serving, started
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Raw, Reply

CALL = {"name": "call_1", "type": "predicate"}


def answered(*answers: dict[str, Any], usage: Any = None) -> Raw:
    return Raw(json.dumps({"model": "d", "answers": answers, "usage": usage or {"input_tokens": 7}}))


def by_name(**answers: dict[str, Any]) -> Raw:
    return Raw(json.dumps({"model": "d", "answers": answers, "usage": {"input_tokens": 7, "output_tokens": None}}))


@dataclass(frozen=True)
class Case:
    """What the endpoint answers about a plain read, and what comes of it."""

    name: str
    reply: Reply
    confidence: float
    runs: bool = False
    form: str = "decisions"


CASES = [
    Case("sure", answered({**CALL, "probability": 0.93}), 0.93, runs=True),
    Case("at the threshold", answered({**CALL, "probability": 0.7}), 0.7, runs=True),
    Case("below it", answered({**CALL, "probability": 0.69}), 0.69),
    Case("not approved", answered({**CALL, "probability": 0.2}), 0.5),
    Case("surely not", answered({**CALL, "probability": 0}), 0.5),
    Case("a refusal", answered({"name": "call_1", "type": "refusal"}), 0.0),
    Case("about another call", answered({**CALL, "name": "call_2", "probability": 1}), 0.0),
    Case("without a name", answered({"type": "predicate", "probability": 1}), 0.0),
    Case("nothing", answered(), 0.0),
    Case("another type", answered({**CALL, "type": "score", "score": 1, "probabilities": [], "confidence": 1}), 0.0),
    Case("an unknown type", answered({**CALL, "type": "verdict", "probability": 1}), 0.0),
    Case("above one", answered({**CALL, "probability": 1.01}), 0.0),
    Case(
        "not a number",
        Raw('{"model": "d", "answers": [{"name": "call_1", "type": "predicate", "probability": NaN}]}'),
        0.0,
    ),
    Case("no probability", answered({**CALL, "probability": None}), 0.0),
    Case("a word", answered({**CALL, "probability": "yes"}), 0.0),
    Case("a chat completion", Raw('{"choices": [{"message": {"content": "true"}}]}'), 0.0),
    Case("no JSON", Raw("<html>", "text/html"), 0.0),
    Case("no answers at all", Raw('{"model": "d", "answers": null}'), 0.0),
    Case("a wrong key", HttpError(401), 0.0),
    Case("a refused request", HttpError(400, "no"), 0.0),
    Case("a broken server", HttpError(500), 0.0),
    Case("no such endpoint", HttpError(404), 0.0),
    Case("by name", by_name(call_1={"type": "noul", "noul": 0.93}), 0.93, runs=True, form="systemone"),
    Case("by name, not approved", by_name(call_1={"type": "noul", "noul": 0.2}), 0.5, form="systemone"),
    Case("by another name", by_name(call_2={"type": "noul", "noul": 1}), 0.0, form="systemone"),
    Case("by name, above one", by_name(call_1={"type": "noul", "noul": 1.01}), 0.0, form="systemone"),
    Case("by name, another type", by_name(call_1={"type": "verdict", "noul": 1}), 0.0, form="systemone"),
    Case("in the other form", answered({**CALL, "probability": 0.93}), 0.0, form="systemone"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_decision_endpoint_reviews(cli: CommandLine, scripted_openai: ScriptedOpenAI, case: Case) -> None:
    scripted_openai.script(case.reply)
    variables = {"OPENAI_BASE_URL": scripted_openai.base_url, "OPENAI_API_KEY": "key-of-the-endpoint", "NO_PROXY": "*"}
    outcome = cli.run("ask", "Read plan.txt", "--prime", f"{case.form}:d", "--json", **variables)
    assert outcome.status == (0 if case.runs else 3), outcome.err
    assert outcome.err == ""
    packet = json.loads(outcome.out)
    routing = packet["tool_routing"]
    (call,) = [*routing["past_calls"], *routing["calls"]]
    assert call["review_confidence"] == pytest.approx(case.confidence)
    assert (call["status"] == "executed") is case.runs
    assert "key-of-the-endpoint" not in outcome.out
    (asked,) = scripted_openai.requests
    assert asked["model"] == "d"
    questions = asked["questions"]
    if case.form == "systemone":
        assert [(one["type"], name) for name, one in questions.items()] == [("noul", "call_1")]
    else:
        assert [(one["type"], one["name"]) for one in questions] == [("predicate", "call_1")]
    assert "Read plan.txt" in asked["input" if case.form == "decisions" else "state"]
    assert scripted_openai.headers[0]["authorization"] == "Bearer key-of-the-endpoint"


@pytest.mark.timeout(900)
async def test_a_gguf_decides_over_http(cli: CommandLine, tiny_gguf: Path) -> None:
    async with started(cli, "--prime", f"llamacpp:{tiny_gguf}") as served:
        client = served.client()
        found = await client.decisions.create(
            model="packetgate",
            input=[{"role": "user", "content": [{"type": "input_text", "text": "It rains."}]}],
            questions=[
                {"type": "predicate", "name": "wet", "instructions": "Is it wet?"},
                {
                    "type": "choice",
                    "instructions": "Which?",
                    "choices": [{"value": "a"}, {"value": True}, {"value": "true"}],
                },
                {
                    "type": "score",
                    "name": "how",
                    "instructions": "How much?",
                    "levels": [{"label": "lo"}, {"label": "hi"}],
                },
            ],
        )
        wet, which, how = found.answers
        assert (wet.type, which.type, how.type) == ("predicate", "choice", "score")
        assert wet.type == "predicate"
        assert 0 < wet.probability < 1
        assert which.type == "choice"
        assert [one.value for one in which.probabilities] == ["a", True, "true"]
        assert sum(one.probability for one in which.probabilities) == pytest.approx(1)
        assert which.choice == max(which.probabilities, key=lambda one: one.probability).value
        assert how.type == "score"
        assert how.score == pytest.approx(how.probabilities[1].probability)
        assert found.model == tiny_gguf.name
        assert found.usage.input_tokens > found.usage.input_tokens_details.cached_tokens > 0
        with suppress_langchain_beta_warning():
            decisions = OpenAIDecisions(model="packetgate", base_url=served.url, api_key="any", max_retries=0)
        same = await decisions.ainvoke(
            {
                "input": "It rains.",
                "questions": {
                    "wet": Predicate(instructions="Is it wet?"),
                    "which": Choice(instructions="Which?", choices={"a": "of a", True: None}),
                    "how": Score(instructions="How much?", levels=["lo", "hi"]),
                },
            }
        )
        assert same.predicates["wet"].probability == pytest.approx(wet.probability, rel=1e-2)
        assert set(same.choices["which"].probabilities) == {"a", True}
        assert same.scores["how"].legend == {0: "lo", 1: "hi"}
        named = {
            "wet": {"type": "noul", "instructions": "Is it wet?"},
            "which": {"type": "choice", "criteria": {"a": "of a", "b": None}},
            "how": {"type": "score", "instructions": "How much?", "criteria": ["lo", {"level": "hi"}]},
        }
        told: Any = await client.post(
            "/systemone", body={"model": "packetgate", "state": "It rains.", "questions": named}, cast_to=object
        )
        assert told["model"] == tiny_gguf.name
        assert told["answers"]["wet"] == {"type": "noul", "noul": pytest.approx(wet.probability, rel=1e-2)}
        assert {*told["answers"]["which"]} == {"type", "choice", "probabilities", "confidence"}
        assert told["answers"]["how"]["legend"] == {"0": "lo", "1": {"level": "hi"}}
        assert sum(told["answers"]["how"]["probabilities"].values()) == pytest.approx(1)
        assert told["usage"]["input_tokens"] > 0
        picture = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
        for wrong, says in (
            ({"questions": {}}, "questions"),
            ({"questions": {"x": {"type": "guess"}}}, "guess"),
            ({"questions": {"x": {"type": "box", "instructions": "the dog"}}}, "box"),
            ({"questions": {"x": {"type": "choice", "criteria": {str(n): None for n in range(63)}}}}, "62"),
            ({"images": ["AAAA"]}, "pictures"),
            ({"state": {"seen": [picture]}}, "pictures"),
        ):
            body = {"model": "packetgate", "state": "x", "questions": named, **wrong}
            with pytest.raises(openai.BadRequestError, match=says):
                await client.post("/systemone", body=body, cast_to=object)
        for bad, says in (
            ({"model": "gpt-6"}, "no model 'gpt-6'"),
            ({"questions": []}, "questions"),
            (
                {"questions": [{"type": "choice", "instructions": "x", "choices": [{"value": "a"}] * 2}]},
                "another value",
            ),
            (
                {
                    "questions": [
                        {"type": "choice", "instructions": "x", "choices": [{"value": str(n)} for n in range(63)]}
                    ]
                },
                "62",
            ),
            ({"questions": [{"type": "guess", "instructions": "x"}]}, "guess"),
            ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]}, "pictures"),
            ({"input": "long " * 50_000}, "longer than"),
        ):
            good = {"model": "packetgate", "input": "x", "questions": [{"type": "predicate", "instructions": "x"}]}
            with pytest.raises(openai.APIStatusError, match=says):
                await client.decisions.create(**{**good, **bad})  # type: ignore[arg-type]
        reviewing = {"PACKETGATE_PRIME_BASE_URL": served.url, "NO_PROXY": "*"}
        outcome = cli.run("ask", "Read plan.txt", "--prime", "decisions:packetgate", "--json", **reviewing)
        (call,) = (routing := json.loads(outcome.out)["tool_routing"])["past_calls"] or routing["calls"]
        assert call["review_confidence_source"] == "decision_probability"
        assert call["review_reasoning"].startswith("packetgate: ")
        assert 0 < call["review_confidence"] < 1
        outcome = cli.run("ask", "Read plan.txt", "--prime", "systemone:packetgate", "--json", **reviewing)
        (again,) = (routing := json.loads(outcome.out)["tool_routing"])["past_calls"] or routing["calls"]
        assert again["review_confidence"] == pytest.approx(call["review_confidence"], rel=1e-2)
        shown = cli.run("doctor", "--prime", "systemone:packetgate", **reviewing).out
        assert f"reflex (no model); packetgate at {served.url} reviews" in shown
    outcome = cli.run("ask", "Read plan.txt", "--prime", "decisions:packetgate", **reviewing)
    assert outcome.status == 2
    assert "cannot be reached" in outcome.err


async def test_what_cannot_be_answered_costs_the_model_nothing(
    cli: CommandLine, scripted_openai: ScriptedOpenAI
) -> None:
    good = {"type": "predicate", "instructions": "Is it wet?"}
    picture = {"type": "predicate", "instructions": [{"type": "input_image", "image_url": "data:"}]}
    twice = {"type": "choice", "instructions": "Which?", "choices": [{"value": "a"}] * 2}
    reached = {"OPENAI_BASE_URL": scripted_openai.base_url, "NO_PROXY": "127.0.0.1"}
    async with serving(cli, "--prime", "openai:scripted", **reached) as served:
        for bad, says in ((picture, "pictures"), (twice, "another value")):
            questions: Any = [good, bad]
            with pytest.raises(openai.BadRequestError, match=says):
                await served.client().decisions.create(model="packetgate", input="It rains.", questions=questions)
    assert scripted_openai.requests == []


async def test_without_a_model_nothing_is_decided(cli: CommandLine) -> None:
    async with serving(cli) as served:
        with pytest.raises(openai.NotFoundError, match="--prime llamacpp"):
            await served.client().decisions.create(
                model="packetgate", input="x", questions=[{"type": "predicate", "instructions": "x"}]
            )
