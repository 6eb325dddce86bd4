"""Choices are measured token by token: every way to cut an answer, and probabilities that are known beforehand."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from support.openai_models import ask_form, model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import Token, Tokens

from packetgate.models.json_text import json_spans
from packetgate.models.openai.logprobs import measured_choices
from packetgate.models.schemas import Choice, MeasuredChoice
from packetgate.state.printing import compact_json

APPROVED = Choice.from_values("approved", values=[True, False])
HEAD, TAIL = '{"approved":', ',"tool":"fs.read"}'
GOOD = HEAD + "true" + TAIL

Step = tuple[str, Mapping[str, float]]
"""A token, and the weights of the tokens that could have been written in its place."""


def found_in(content: Any, text: str = GOOD, *choices: Choice) -> tuple[MeasuredChoice, ...]:
    answer = AIMessage("", response_metadata={"logprobs": {"content": content}})
    return measured_choices(answer, text, choices or (APPROVED,))


def measured(choice: Choice, *steps: Step) -> tuple[MeasuredChoice, ...]:
    content = []
    for token, weights in steps:
        total = sum(weights.values())
        listed = {one: {"token": one, "logprob": math.log(weight / total)} for one, weight in weights.items()}
        content.append(listed[token] | {"top_logprobs": [*listed.values()]})
    return found_in(content, "".join(token for token, _ in steps), choice)


def sure(*tokens: str) -> list[Step]:
    return [(token, {token: 1.0}) for token in tokens]


def listed(*tokens: str, **more: Any) -> list[dict[str, Any]]:
    return [{"token": one, "logprob": -0.1, "top_logprobs": []} | more for one in tokens]


CUTS: dict[str, Sequence[Step]] = {
    "a token for the value": [*sure(HEAD), ("true", {"true": 3, "false": 1}), *sure(',"reason":"x"}')],
    "value and comma": [*sure(HEAD), ("true,", {"true,": 2, "true": 1, "false": 1}), *sure('"reason":1}')],
    "colon and value": [*sure('{"approved"'), (":true", {":true": 3, ":false": 1, ":": 5}), *sure("}")],
    "colon's token": [*sure('{"approved'), ('":tr', {'":tr': 3, '":fa': 1, '":': 9}), *sure("ue}")],
    "all in one": [('{"approved":true,"reason":"x"}', {'{"approved":true,"reason":"x"}': 3, '{"approved":f': 1})],
    "white space": [*sure('{ "approved" :'), (" true", {" true": 3, " false": 1, "true": 9}), *sure(" }")],
    "no option": [*sure(HEAD), ("true", {"true": 3, "false": 1, "null": 96}), *sure("}")],
    "escaped quotes before": [
        *sure(r'{"why":"\"approved\":false\\","approved":'),
        ("true", {"true": 3, "fa": 1}),
        *sure("}"),
    ],
}
"""Ways to write an approval, where the model gives `true` three times the weight of `false`."""


@pytest.mark.parametrize("steps", CUTS.values(), ids=CUTS)
def test_every_tokenization_gives_the_same_probability(steps: Sequence[Step]):
    (found,) = measured(APPROVED, *steps)
    assert (found.path, found.value) == (("approved",), "true")
    assert found.probability == pytest.approx(0.75)


@pytest.mark.parametrize(
    "text",
    [
        *("", "Certainly! I approve.", '{"approved"', '{"approved":tr', '{"approved":null}', '{"approved":"true"}'),
        *('{"Approved":true}', '[{"approved":true}]', '{"more":{"approved":true}}', '{"approved":{"approved":true}}'),
        *(f"Sure: {GOOD}", f"```json\n{GOOD}\n```", f"<think>no</think>{GOOD}", f"{GOOD} I hope", f"{GOOD}{GOOD}"),
    ],
)
def test_other_values_are_not_measured(text: str):
    for size in (1, 3, 100):
        assert measured(APPROVED, *sure(*(text[at : at + size] for at in range(0, len(text), size)))) == ()


def test_options_with_different_beginnings_have_a_full_distribution():
    choice = Choice.from_values("answer", values=["A", "B", "C"])
    weights = {"A": 1.0, 'B"': 2.0, "B": 3.0, "C": 2.0, "D": 9.0}
    (found,) = measured(choice, *sure('{"answer":"'), ("B", weights), *sure('"', "}"))
    assert found == MeasuredChoice(("answer",), '"B"', pytest.approx(5 / 8))
    assert found.probabilities == pytest.approx({'"A"': 1 / 8, '"B"': 5 / 8, '"C"': 2 / 8})


def test_the_last_of_duplicate_keys_counts():
    steps = [*sure(HEAD, "true,", '"approved":'), ("false", {"false": 3, "true": 1}), *sure("}")]
    assert measured(APPROVED, *steps) == (MeasuredChoice(("approved",), "false", pytest.approx(0.75)),)


def test_characters_split_between_tokens_are_read():
    text = HEAD + 'true,"tool":"é"}'
    other = {"token": "", "bytes": [34], "logprob": -1}
    content = [{"token": "", "bytes": [byte], "logprob": -0.5, "top_logprobs": [other]} for byte in text.encode()]
    tool = Choice.from_values("tool", values=["fs.read", "é"])
    assert [one.value for one in found_in(content, text, APPROVED, tool)] == ["true", '"é"']


@pytest.mark.parametrize(
    "content",
    [
        *(None, [], {}, "tokens", 7, [None], [{}], [{"token": "true"}], [{"token": None, "logprob": 0}]),
        listed(HEAD, "true", TAIL, logprob=None),
        listed(HEAD, "true", TAIL, bytes=[300]),
        listed(HEAD, "true", TAIL, top_logprobs=[{"logprob": 0}]),
        listed(HEAD, "false", ',"tool":"fs.write"}'),
        listed("Let me think: ", GOOD),
        listed("", "", ""),
    ],
    ids=str,
)
def test_missing_or_mismatched_logprobs_are_ignored(content: Any):
    assert found_in(content) == ()


@pytest.mark.parametrize("logprob", [5.0, -9999.0, float("nan"), float("inf"), float("-inf")])
def test_invalid_logprobs_are_ignored(logprob: float):
    assert all(0 < one.probability <= 1 for one in found_in(listed(HEAD, "true", TAIL, logprob=logprob)))


@pytest.mark.parametrize(
    ("token", "value", "probability"),
    [
        (Token("false", {"true": 0.5}), "false", 1 / 1.5),
        (Token("true", {"true": 0.02, "yes": 0.03, "no": 0.01}), "true", 0.02 / 0.03),
        (Token("true", {"true": 0.97, "yes": 0.02999}), "true", 0.97 / 0.97001),
    ],
    ids=["the chosen token is not listed", "the other is not listed", "nearly sure"],
)
async def test_unlisted_tokens_have_at_most_the_lowest_listed_probability(
    token: Token, value: str, probability: float, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script(Tokens.of(HEAD, token, ',"confidence":0.9,"reason":"fine"}'))
    answer = await ask_form(await model_at(scripted_openai))
    assert answer.choices == (MeasuredChoice(("approved",), value, pytest.approx(probability)),)


def test_all_values_of_a_json_text_are_located():
    value = {"a": {"tool": "x"}, "calls": [{"n": [[], {}, 1.5e3, -1]}, {"tool": 'fs."read'}, {"tool": "fs.read"}]}
    for text in (json.dumps(value), json.dumps(value, indent=2), compact_json(value)):
        spans = {path: json.loads(text[start:end]) for path, start, end in json_spans(text)}
        assert spans[()] == value
        assert spans["calls", 0, "n", 2] == 1500
        assert spans["calls", 1, "tool"] == 'fs."read'
        assert len(spans) == 14
