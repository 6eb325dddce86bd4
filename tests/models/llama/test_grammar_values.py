from pathlib import Path

import pytest
from support.grammar_walk import RandomWriter

from packetgate.models.llama.grammar import LARGEST
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.schemas import CONFIDENCE, object_schema, text_schema


@pytest.fixture(scope="module")
def writer(tiny_gguf: Path) -> RandomWriter:
    return RandomWriter(LlamaWeights(str(tiny_gguf), {}))


NUMBERS = {
    "1e999": False,
    "1e5": False,
    str(LARGEST): True,
    str(LARGEST + 1): False,
    str(-LARGEST): True,
    "1234567890123456789": True,
    "0.123456789": True,
    "0.1234567891": False,
    "0." + "0" * 50: False,
    "-0.5": True,
    "-1.0": True,
    "01": False,
    ".5": False,
    "NaN": False,
    "Infinity": False,
}


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_bounded(writer: RandomWriter, number: str):
    assert writer.takes(object_schema(value={"type": "number"}), f'{{"value":{number}}}') == NUMBERS[number]


def test_a_confidence_has_few_digits(writer: RandomWriter):
    form = object_schema(confidence=CONFIDENCE)
    assert writer.takes(form, '{"confidence":0.95}')
    assert not writer.starts(form, '{"confidence":0.' + "3" * 20)


TEXTS = {
    "plain": True,
    "读 🙂 é": True,
    r"\n\t\"\\": True,
    "\n": False,
    "\t": False,
    "\x00": False,
    "\x7f": False,
    r"\ud800": False,
    r"\x41": False,
    '"': False,
    "a" * 4000: True,
    "a" * 4001: False,
}


@pytest.mark.parametrize("inside", TEXTS, ids=[repr(one[:12]) for one in TEXTS])
def test_texts_are_json_strings(writer: RandomWriter, inside: str):
    assert writer.takes(object_schema(value={"type": "string"}), f'{{"value":"{inside}"}}') == TEXTS[inside]


def test_tokens_without_text_are_never_written(writer: RandomWriter):
    form = object_schema(t=text_schema(50))
    for begun in ('{"t":"', '{"t":"<', '{"t":"<unk', '{"t":"<s'):
        assert b"" not in writer.following(form, begun)
