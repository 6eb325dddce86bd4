"""Choices measured token by token: every way to cut an answer, and probabilities that are known beforehand."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from packetgate.models.choices import ChoiceMeter, MeasuredChoice, TokenWeights, continues
from packetgate.models.schemas import Choice
from packetgate.state.printing import compact_json

APPROVED = Choice.among("approved", values=[True, False])
TOOLS = Choice.among("calls", "*", "tool", values=["fs.read", "fs.read_all", "fs.write", "mail.send"])
COUNT = Choice.among("count", values=[1, 10, 12, 2])

Step = tuple[str, Mapping[str, float] | None]
"""A token, and what could have been written in its place."""


def offering(tokens: Mapping[bytes, float]) -> TokenWeights:
    return lambda texts: {one: weight for one, weight in tokens.items() if any(continues(one, text) for text in texts)}


def metered(choice: Choice, *steps: Step) -> list[MeasuredChoice]:
    meter = ChoiceMeter([choice])
    for token, others in steps:
        meter.feed(token.encode(), None if others is None else offering({one.encode(): w for one, w in others.items()}))
    return meter.measured


def sure(*tokens: str) -> list[Step]:
    return [(token, {token: 1.0}) for token in tokens]


@dataclass(frozen=True)
class Cut:
    """One way to write `{"approved":true,"reason":"x"}`; the model gives `true` 3 times the weight of `false`."""

    name: str
    steps: Sequence[Step]


CUTS = [
    Cut("a token for the value", [*sure('{"approved":'), ("true", {"true": 3, "false": 1}), *sure(',"reason":"x"}')]),
    Cut("value and comma", [*sure('{"approved":'), ("true,", {"true,": 2, "true": 1, "false": 1}), *sure('"reason"')]),
    Cut("colon and value", [*sure('{"approved"'), (":true", {":true": 3, ":false": 1, ":": 5}), *sure(",")]),
    Cut("begins in the colon's token", [*sure('{"approved'), ('":tr', {'":tr': 3, '":fa': 1, '":': 9}), *sure("ue,")]),
    Cut("all in one", [('{"approved":true,"reason":"x"}', {'{"approved":true,"reason":"x"}': 3, '{"approved":f': 1})]),
    Cut("in two halves", [*sure('{"approved":'), ("tr", {"t": 1, "tr": 2, "fals": 1}), *sure("ue", "}")]),
    Cut("white space before", [*sure('{ "approved" :'), (" true", {" true": 3, " false": 1, "true": 9}), *sure(" }")]),
    Cut("white space as a token", [*sure('{"approved":', " "), ("true", {"true": 3, "false": 1}), *sure("\n}")]),
    Cut("what is no option does not count", [*sure('{"approved":'), ("true", {"true": 3, "false": 1, "null": 96})]),
    Cut("nothing else was possible before", [('{"approved":', None), ("t", {"t": 3, "f": 1}), ("rue}", None)]),
    Cut("escaped quotes before", [*sure(r'{"why":"\"approved\":false\\","approved":'), ("true", {"true": 3, "fa": 1})]),
    Cut("the same key deeper", [*sure('{"a":[{"approved":false}],"approved":'), ("true", {"true": 3, "false": 1})]),
]


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.name)
def test_every_tokenization_gives_the_same_probability(cut: Cut):
    (found,) = metered(APPROVED, *cut.steps)
    assert (found.path, found.value) == (("approved",), "true")
    assert found.probability == pytest.approx(0.75)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Certainly! I approve.",
        "approved: true",
        '{"approved"',
        '{"approved":',
        '{"approved":tr',
        '{"approved":null}',
        '{"approved":"true"}',
        '{"Approved":true}',
        '[{"approved":true}]',
        '{"more":{"approved":true}}',
        '{"approved":{"approved":true}}',
        '{"why":"approved","of":"true"}',
    ],
)
def test_other_values_are_not_measured(text: str):
    for size in (1, 3, 100):
        steps = sure(*(text[at : at + size] for at in range(0, len(text), size)))
        assert metered(APPROVED, *steps) == []


def test_a_number_is_measured_at_its_end():
    assert metered(COUNT, *sure('{"count":', "1")) == []
    assert metered(COUNT, *sure('{"count":', "1", "5", "}")) == []
    (found,) = metered(COUNT, *sure('{"count":'), ("1", {"1": 1}), (",", {",": 1, "}": 2, "0": 1}))
    assert (found.value, found.probability) == ("1", pytest.approx(0.75))


def test_two_choices_in_one_token_are_measured():
    text = '{"calls":[{"tool":"fs.read"},{"tool":"mail.send"}]}'
    for cut in range(len(text)):
        found = metered(TOOLS, *sure(text[:cut], text[cut:]) if cut else sure(text))
        assert [(one.path, one.value) for one in found] == [
            (("calls", 0, "tool"), '"fs.read"'),
            (("calls", 1, "tool"), '"mail.send"'),
        ]


def test_a_name_that_begins_another_is_distinguished():
    """The model writes `.read` and a quote, or `.read_` and the rest: each name has its one way to be written."""
    first = {'"fs': 1.0}
    second = {".read": 0.6, ".read_": 0.4}
    (short,) = metered(TOOLS, *sure('{"calls":[{"tool":'), ('"fs', first), (".read", second), ('"}', {'"}': 1}))
    (long,) = metered(TOOLS, *sure('{"calls":[{"tool":'), ('"fs', first), (".read_", second), ('all"', {'all"': 1}))
    assert (short.value, short.probability) == ('"fs.read"', pytest.approx(0.6))
    assert (long.value, long.probability) == ('"fs.read_all"', pytest.approx(0.4))


class ByteModel:
    """A language model over bytes whose probability of each option is known; it also wants to write rubbish."""

    def __init__(self, options: Sequence[str], seed: int) -> None:
        chance = random.Random(seed)
        raw = [chance.random() ** 3 + 0.001 for _ in options]
        self.probability = {option: one / sum(raw) for option, one in zip(options, raw, strict=True)}
        self._rubbish = chance.random

    def after(self, written: bytes) -> dict[bytes, float]:
        """Return the probability of each next byte after part of an option; `,` ends one."""
        alive = {f"{option},".encode(): one for option, one in self.probability.items()}
        alive = {text: one for text, one in alive.items() if text.startswith(written) and text != written}
        keep = 0.1 + 0.9 * self._rubbish()
        found = {b"?": 1 - keep}
        for text, one in alive.items():
            following = text[len(written) : len(written) + 1]
            found[following] = found.get(following, 0.0) + keep * one / sum(alive.values())
        return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("choice", [APPROVED, TOOLS, COUNT], ids=["approved", "tools", "count"])
def test_probabilities_equal_the_models(choice: Choice, seed: int):
    model = ByteModel(choice.options, seed)
    found: dict[str, float] = {}
    for option in choice.options:
        before = '{"calls":[{"tool":' if choice is TOOLS else f'{{"{choice.path[0]}":'
        meter = ChoiceMeter([choice])
        for byte in before.encode():
            meter.feed(bytes((byte,)), offering({bytes((byte,)): 1.0}))
        text = f"{option},".encode()
        for at in range(len(text)):
            meter.feed(text[at : at + 1], offering(model.after(text[:at])))
        (one,) = meter.measured
        assert one.value == option
        found[option] = one.probability
    assert found == pytest.approx(model.probability)
    assert sum(found.values()) == pytest.approx(1)


def test_values_are_found_at_every_tokenization():
    value = {"a": {"tool": "x"}, "calls": [{"n": [[], {}, 1.5e3, -1]}, {"tool": 'fs."read'}, {"tool": "fs.read"}]}
    for text in (json.dumps(value), json.dumps(value, indent=2), compact_json(value)):
        for size in range(1, 12):
            found = metered(TOOLS, *sure(*(text[at : at + size] for at in range(0, len(text), size))))
            assert [(one.path, one.value) for one in found] == [(("calls", 2, "tool"), '"fs.read"')]


def test_options_with_different_beginnings_have_a_full_distribution():
    choice = Choice.among("answer", values=["A", "B", "C"])
    weights = {"A": 1.0, 'B"': 2.0, "B": 3.0, "C": 2.0, "D": 9.0}
    (found,) = metered(choice, *sure('{"answer":"'), ("B", weights), *sure('"', "}"))
    assert found == MeasuredChoice(("answer",), '"B"', pytest.approx(5 / 8))
    assert found.among == pytest.approx({'"A"': 1 / 8, '"B"': 5 / 8, '"C"': 2 / 8})
