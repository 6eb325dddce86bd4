"""Choices are measured token by token: every way to cut an answer, and probabilities that are known beforehand."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from langchain_core.messages import AIMessage

from packetgate.models.json_text import json_spans
from packetgate.models.openai.logprobs import measured_choices
from packetgate.models.schemas import Choice, MeasuredChoice
from packetgate.state.printing import compact_json

APPROVED = Choice.from_values("approved", values=[True, False])

Step = tuple[str, Mapping[str, float]]
"""A token, and the weights of the tokens that could have been written in its place."""


def measured(choice: Choice, *steps: Step) -> tuple[MeasuredChoice, ...]:
    content = []
    for token, weights in steps:
        total = sum(weights.values())
        listed = {one: {"token": one, "logprob": math.log(weight / total)} for one, weight in weights.items()}
        content.append(listed[token] | {"top_logprobs": [*listed.values()]})
    answer = AIMessage("", response_metadata={"logprobs": {"content": content}})
    return measured_choices(answer, "".join(token for token, _ in steps), [choice])


def sure(*tokens: str) -> list[Step]:
    return [(token, {token: 1.0}) for token in tokens]


@dataclass(frozen=True)
class Cut:
    """One way to write `{"approved":true,"reason":"x"}`; the model gives `true` 3 times the weight of `false`."""

    name: str
    steps: Sequence[Step]


CUTS = [
    Cut("a token for the value", [*sure('{"approved":'), ("true", {"true": 3, "false": 1}), *sure(',"reason":"x"}')]),
    Cut(
        "value and comma",
        [*sure('{"approved":'), ("true,", {"true,": 2, "true": 1, "false": 1}), *sure('"reason":1}')],
    ),
    Cut("colon and value", [*sure('{"approved"'), (":true", {":true": 3, ":false": 1, ":": 5}), *sure("}")]),
    Cut("begins in the colon's token", [*sure('{"approved'), ('":tr', {'":tr': 3, '":fa': 1, '":': 9}), *sure("ue}")]),
    Cut("all in one", [('{"approved":true,"reason":"x"}', {'{"approved":true,"reason":"x"}': 3, '{"approved":f': 1})]),
    Cut("in two halves", [*sure('{"approved":'), ("tr", {"t": 1, "tr": 2, "fals": 1}), *sure("ue", "}")]),
    Cut("white space before", [*sure('{ "approved" :'), (" true", {" true": 3, " false": 1, "true": 9}), *sure(" }")]),
    Cut("white space as a token", [*sure('{"approved":', " "), ("true", {"true": 3, "false": 1}), *sure("\n}")]),
    Cut(
        "what is no option does not count",
        [*sure('{"approved":'), ("true", {"true": 3, "false": 1, "null": 96}), *sure("}")],
    ),
    Cut(
        "escaped quotes before",
        [*sure(r'{"why":"\"approved\":false\\","approved":'), ("true", {"true": 3, "fa": 1}), *sure("}")],
    ),
    Cut(
        "the same key deeper",
        [*sure('{"a":[{"approved":false}],"approved":'), ("true", {"true": 3, "false": 1}), *sure("}")],
    ),
]


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.name)
def test_every_tokenization_gives_the_same_probability(cut: Cut):
    (found,) = measured(APPROVED, *cut.steps)
    assert (found.path, found.value) == (("approved",), "true")
    assert found.probability == pytest.approx(0.75)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Certainly! I approve.",
        '{"approved"',
        '{"approved":tr',
        '{"approved":null}',
        '{"approved":"true"}',
        '{"Approved":true}',
        '[{"approved":true}]',
        '{"more":{"approved":true}}',
        '{"approved":{"approved":true}}',
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


def test_all_values_of_a_json_text_are_located():
    value = {"a": {"tool": "x"}, "calls": [{"n": [[], {}, 1.5e3, -1]}, {"tool": 'fs."read'}, {"tool": "fs.read"}]}
    for text in (json.dumps(value), json.dumps(value, indent=2), compact_json(value)):
        spans = {path: json.loads(text[start:end]) for path, start, end in json_spans(text)}
        assert spans[()] == value
        assert spans["calls", 0, "n", 2] == 1500
        assert spans["calls", 1, "tool"] == 'fs."read'
        assert len(spans) == 14
