"""The estimate of tokens, compared with the count of a real tokenizer."""

from collections.abc import Callable

import pytest
from support.tool_specs import files_catalogue

from packetgate.tools.text.tokens import estimated_tokens

TEXTS = {
    "schema": '{"type":"object","properties":{"path":{"type":"string","minLength":1},"max_items":{"anyOf":[{"type":'
    '"integer"},{"type":"null"}],"default":null}},"required":["path"],"additionalProperties":false}',
    "arguments": '{"since":"2024-05-17T08:30:00Z","ids":[10442,98817,3],"flags":{"deep":true,"dry":false}}',
    "prose": "Read a file and return its text. Long files are cut, and the answer says where to go on reading.",
    "list": "- one: the first\n- two: the second\n- three: the third, which is longer\n\nReturns nothing.\n",
    "Chinese": "读取文件并返回其内容。如果文件太长则只返回开头部分。",
    "Greek": "Διαβάζει ένα αρχείο και επιστρέφει το κείμενο.",
    "French": "Lit un fichier texte et renvoie son contenu, coupé s'il dépasse la limite fixée.",
    **{name: f"{spec.full}\n{spec.input_schema}" for name, spec in files_catalogue().items()},
}


@pytest.fixture(scope="module")
def exact_tokens() -> Callable[[str], int]:
    """Mistral's vocabulary of 131,000 tokens."""
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    tokenizer = MistralTokenizer.v3(is_tekken=True).instruct_tokenizer.tokenizer
    return lambda text: len(tokenizer.encode(text, bos=False, eos=False))


@pytest.mark.parametrize("name", TEXTS)
def test_the_estimate_is_never_too_low(exact_tokens: Callable[[str], int], name: str):
    exact = exact_tokens(TEXTS[name])
    assert exact <= estimated_tokens(TEXTS[name]) <= 1.8 * exact
