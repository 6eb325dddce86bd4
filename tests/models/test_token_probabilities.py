"""The probabilities of words and calls, from their tokens: every tokenisation of an answer, and known probabilities."""

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from packetgate.models.decoding import WrittenCall
from packetgate.models.json_text import json_spans
from packetgate.models.token_probabilities import (
    begun_word,
    call_probability,
    with_probabilities,
    word_probabilities,
)
from packetgate.state.printing import compact_json

WORDS = ("yes", "no")
CALL = WrittenCall("fs.read", {"path": "é.txt", "lines": [1, {"a": 2}]})


def listed(token: str, weights: Mapping[str, float] | None = None, **more: Any) -> dict[str, Any]:
    """Return a token with the probabilities of its alternatives."""
    weights = weights or {token: 1.0}
    top = [{"token": one, "logprob": math.log(weight)} for one, weight in weights.items()]
    return {"token": token, "logprob": math.log(weights.get(token, 0.5)), "top_logprobs": top} | more


def answered(*tokens: Any) -> AIMessage:
    return AIMessage("", response_metadata={"logprobs": {"content": [*tokens]}})


@pytest.mark.parametrize(
    ("tokens", "yes"),
    [
        ([listed("yes", {"yes": 0.6, "no": 0.2, "maybe": 0.2})], 0.75),
        ([listed(" Yes", {" Yes": 0.3, "yes": 0.3, "**No": 0.2})], 0.75),
        ([listed("y", {"y": 0.6, "n": 0.2}), listed("es")], 0.75),
        ([listed("\n"), listed("yes.", {"yes.": 0.6, "no": 0.2})], 0.75),
        ([listed("<think>no"), listed("</think>"), listed("yes", {"yes": 0.75, "no": 0.25})], 0.75),
        ([listed("no", {"no": 0.97, "It": 0.02})], 0.01 / 0.98),
        ([listed("yes", {"maybe": 0.4, "no": 0.1})], 0.5 / 0.6),
    ],
    ids=["one token", "case and marks", "a part", "white space", "a thought", "one not listed", "chosen not listed"],
)
def test_a_word_has_the_probability_of_all_its_spellings(tokens: list[dict[str, Any]], yes: float):
    assert word_probabilities(answered(*tokens), WORDS) == pytest.approx({"yes": yes, "no": 1 - yes})


@pytest.mark.parametrize(
    "content",
    [
        *(None, [], {}, "tokens", 7, [None], [{}], [{"token": "yes"}], [{"token": None, "logprob": 0}]),
        [listed("yes", logprob=None)],
        [listed("yes", bytes=[300])],
        [listed("yes", top_logprobs=[{"logprob": 0}])],
        [listed("It is", {"It is": 0.9, "Well": 0.1})],
        [listed("")],
    ],
    ids=str,
)
def test_missing_or_invalid_logprobs_are_ignored(content: Any):
    answer = AIMessage("", response_metadata={"logprobs": {"content": content}})
    assert word_probabilities(answer, WORDS) == {}
    assert with_probabilities([CALL], answer) == (CALL,)


@pytest.mark.parametrize("logprob", [5.0, -9999.0, float("nan"), float("inf"), float("-inf")])
def test_probabilities_stay_between_0_and_1(logprob: float):
    found = word_probabilities(answered(listed("yes", logprob=logprob, top_logprobs=[])), WORDS)
    assert all(0 <= one <= 1 for one in found.values())


@pytest.mark.parametrize(
    ("text", "word"),
    [("Yes, it is", "yes"), ("**no**", "no"), ("yesterday", None), ("N", "no"), ("It is: yes", None), ("", None)],
)
def test_an_answer_begins_with_at_most_one_word(text: str, word: str | None):
    assert begun_word(text, WORDS) == word


def test_labels_that_differ_in_case_are_different():
    found = word_probabilities(answered(listed("a", {"a": 0.6, "A": 0.2, "b": 0.2})), ("A", "a", "b"))
    assert found == pytest.approx({"A": 0.2, "a": 0.6, "b": 0.2})


FORMS = {
    "hermes": '<tool_call>\n{{"name": "{name}", "arguments": {args}}}\n</tool_call>',
    "fenced": '```json\n{{"name": "{name}", "arguments": {args}}}\n```',
    "llama": '<|python_tag|>{{"name": "{name}", "parameters": {args}}}',
    "mistral": "[TOOL_CALLS]{name}[ARGS]{args}",
    "after a thought": '<think>Say {name}{args}?</think>{{"name":"{name}","arguments":{args}}}',
}


@pytest.mark.parametrize("size", [1, 3, 1_000])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_calls_are_found_in_the_tokens_of_every_form(form: str, size: int):
    text = form.format(name=CALL.name, args=json.dumps(CALL.arguments, ensure_ascii=False))
    raw = text.encode()
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    tokens = [listed("", bytes=[*piece], logprob=math.log(0.5)) for piece in pieces]
    (found,) = with_probabilities([CALL], answered(*tokens))
    assert found.probabilities.keys() == CALL.arguments.keys()
    if size == 1:
        assert found.name_probability == pytest.approx(0.5 ** len(CALL.name))
        assert found.probabilities["path"] == pytest.approx(0.5 ** len('"é.txt", "lines": '.encode()))
        first = call_probability(answered(*tokens))
        assert first is not None


def test_calls_outside_the_tokens_are_not_measured():
    other = WrittenCall("fs.read", {"path": "b.txt"})
    tokens = listed('{"name": "fs.read", "arguments": {"path": "a.txt"}}')
    assert with_probabilities([other], answered(tokens)) == (other,)


@pytest.mark.parametrize(
    ("before", "is_found"), [("{}" * 20_000, True), ('{"a":{"b":1}},' * 3_000, True), ("{" * 49_000, False)]
)
def test_many_braces_before_a_call_are_each_read_once(before: str, is_found: bool):
    text = f'{before} {{"name": "fs.read", "arguments": {json.dumps(CALL.arguments)}}}'
    (found,) = with_probabilities([CALL], answered(listed(text)))
    assert (found.name_probability is not None) is is_found


@pytest.mark.parametrize(
    ("weights", "probability"),
    [
        ({"<tool_call>": 0.6, "Sure": 0.2}, 0.75),
        ({"```": 0.3, '{"': 0.3, "The": 0.2}, 0.75),
        ({"The": 1.0}, 0.0),
    ],
)
def test_the_first_token_tells_a_call_from_text(weights: dict[str, float], probability: float):
    assert call_probability(answered(listed(next(iter(weights)), weights))) == pytest.approx(probability)
    assert call_probability(AIMessage("")) is None


def test_all_values_of_a_json_text_are_located():
    value = {"a": {"tool": "x"}, "calls": [{"n": [[], {}, 1.5e3, -1]}, {"tool": 'fs."read'}, {"tool": "fs.read"}]}
    for text in (json.dumps(value), json.dumps(value, indent=2), compact_json(value)):
        spans = {path: json.loads(text[start:end]) for path, start, end in json_spans(text)}
        assert spans[()] == value
        assert spans["calls", 0, "n", 2] == 1500
        assert spans["calls", 1, "tool"] == 'fs."read'
        assert len(spans) == 14
