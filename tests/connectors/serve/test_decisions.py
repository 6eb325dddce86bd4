"""`/v1/systemone`: a GGUF answers over HTTP, and reviews the calls of another Packetgate."""

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest
from support.command_line import CommandLine
from support.endpoints import serving

QUESTIONS = {
    "wet": {"type": "noul", "instructions": "Is it wet?"},
    "which": {"type": "choice", "criteria": {"a": "of a", "b": None}},
    "how": {"type": "score", "instructions": "How much?", "criteria": ["lo", {"level": "hi"}]},
}
PICTURE = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
REFUSED = [
    ({"model": "gpt-6"}, "model"),
    ({"questions": {}}, "questions"),
    ({"questions": {"x": {"type": "guess"}}}, "guess"),
    ({"questions": {"x": {"type": "box", "instructions": "the dog"}}}, "box"),
    ({"questions": {"x": {"type": "choice", "criteria": {str(n): None for n in range(63)}}}}, "62"),
    ({"images": ["AAAA"]}, "images"),
    ({"state": {"seen": [PICTURE]}}, "image"),
    ({"state": "long " * 50_000}, "context"),
]


def post(client: openai.AsyncOpenAI, **changes: Any) -> Any:
    body = {"model": "packetgate", "state": "It rains.", "questions": QUESTIONS, **changes}
    return client.post("/systemone", body=body, cast_to=object)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_gguf_answers_decision_requests_and_reviews_calls(cli: CommandLine, tiny_gguf: Path) -> None:
    async with serving(cli, "--prime", f"llamacpp:{tiny_gguf}") as served:
        client = served.client()
        response = await post(client)
        answers = response["answers"]
        assert response["model"] == tiny_gguf.name
        assert 0 < answers["wet"]["noul"] < 1
        assert {*answers["which"]} == {"type", "choice", "probabilities", "confidence"}
        assert answers["how"]["legend"] == {"0": "lo", "1": {"level": "hi"}}
        assert sum(answers["how"]["probabilities"].values()) == pytest.approx(1)
        assert response["usage"]["input_tokens"] > 0
        for changes, offender in REFUSED:
            with pytest.raises(openai.APIStatusError, match=offender):
                await post(client, **changes)
        variables = {"PACKETGATE_PRIME_BASE_URL": served.url, "NO_PROXY": "*"}
        words = ("ask", "Read plan.txt", "--prime", "systemone:packetgate", "--json")
        outcome = await asyncio.to_thread(cli.run, *words, **variables)
        (call,) = (routing := json.loads(outcome.out)["tool_routing"])["past_calls"] or routing["calls"]
        assert call["review_confidence_source"] == "decision_probability"
        assert 0 < call["review_confidence"] < 1


async def test_without_a_model_requests_for_decisions_are_refused(cli: CommandLine) -> None:
    async with serving(cli) as served:
        with pytest.raises(openai.NotFoundError, match="llamacpp:FILE"):
            await post(served.client())
