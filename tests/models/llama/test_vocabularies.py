# ruff: noqa: E501  a table
"""With every kind of vocabulary, a grammar keeps calls valid, calls are measured, and prompts are reused."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from support.gguf_model import write_gguf
from support.palettes import palettes

from packetgate.deciders.language.prompting import arguments_schema
from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.model import OfferedTool
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import check_call

WIDTH = 64
WORDS = ("weather", "get_weather", "true", "false", "none", "confidence", "Paris")
JSON_PIECES = ('{"', '":', '","', '"}', '{"action":"', '{"action":"call', '"city":"', "true,", '"none"')
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}[{{ message.role }}] {{ message.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)
NORMAL, CONTROL, BYTE, USER = (
    gguf.TokenType.NORMAL,
    gguf.TokenType.CONTROL,
    gguf.TokenType.BYTE,
    gguf.TokenType.USER_DEFINED,
)
Token = tuple[str, gguf.TokenType]


def _bytes_of_gpt2() -> list[str]:
    """Return the character for each byte in GPT-2's vocabularies."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return [chr(byte) if byte in plain else chr(0x100 + others.index(byte)) for byte in range(256)]


SPECIAL: tuple[Token, ...] = (("<unk>", gguf.TokenType.UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL))
BYTES: tuple[Token, ...] = tuple((f"<0x{byte:02X}>", BYTE) for byte in range(256))
LETTERS: tuple[Token, ...] = tuple((chr(char), NORMAL) for char in range(0x21, 0x7F))
SPACED: tuple[Token, ...] = (("\u2581", NORMAL), *((f"\u2581{word}", NORMAL) for word in ("the", "t", *WORDS)))


def user_defined(*words: str) -> tuple[Token, ...]:
    return tuple((word, USER) for word in words)


@dataclass(frozen=True)
class Vocabulary:
    """A vocabulary of a kind that llama.cpp knows."""

    id: str
    model: str
    tokens: Sequence[Token]
    space_prefix: bool | None = None
    """None if the file does not state it."""
    merges: Sequence[str] = ()
    pre: str = ""


GPT2: tuple[Token, ...] = tuple((char, NORMAL) for char in _bytes_of_gpt2())
MERGES = ("t r", "tr u", "tru e", "\u0120 t", '{ "', "a c", '" :', "w e", '" ,', ', "', '" ,"')
MERGED: tuple[Token, ...] = tuple((merge.replace(" ", ""), NORMAL) for merge in MERGES)
CHAT: tuple[Token, ...] = (("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL))

VOCABULARIES = [
    Vocabulary(
        "SentencePiece, words",
        "llama",
        (*SPECIAL, *BYTES, *SPACED, *LETTERS, *user_defined(*WORDS, *JSON_PIECES, " weather")),
    ),
    Vocabulary(
        "SentencePiece, tags",
        "llama",
        (*SPECIAL, *BYTES, *SPACED, *LETTERS, *user_defined("<tool_call>", "</tool_call>", "<b>", "\n\n", "\x02")),
    ),
    Vocabulary("Qwen", "gpt2", (*GPT2, *MERGED, *CHAT, *user_defined("<think>", "<tool_call>")), merges=MERGES, pre="qwen2"),
    Vocabulary("GPT-2, prefixed", "gpt2", (*GPT2, *MERGED, *CHAT), merges=MERGES, pre="gpt-2", space_prefix=True),
    Vocabulary("Unigram", "t5", (("<pad>", CONTROL), ("</s>", CONTROL), ("<unk>", gguf.TokenType.UNKNOWN), *SPACED, *LETTERS, *BYTES)),
]  # fmt: skip


def write_model(path: Path, vocabulary: Vocabulary) -> Path:
    """Write a llama model with random weights and that vocabulary."""
    texts = [text for text, _ in vocabulary.tokens]

    def add(writer: gguf.GGUFWriter) -> None:
        for name, number in (("<s>", writer.add_bos_token_id), ("</s>", writer.add_eos_token_id), ("<unk>", writer.add_unk_token_id),
                             ("<|endoftext|>", writer.add_bos_token_id), ("<|im_end|>", writer.add_eos_token_id)):  # fmt: skip
            if name in texts:
                number(texts.index(name))
        if vocabulary.merges:
            writer.add_token_merges(vocabulary.merges)
        if vocabulary.pre:
            writer.add_tokenizer_pre(vocabulary.pre)
        if vocabulary.space_prefix is not None:
            writer.add_add_space_prefix(vocabulary.space_prefix)

    random = np.random.default_rng(0)
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    weights = {f"blk.0.{name}.weight": random.normal(0, 0.2, (WIDTH, WIDTH)) for name in names}
    weights |= {f"{name}.weight": np.ones(WIDTH) for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm")}
    weights |= {f"{name}.weight": random.normal(0, 0.3, (len(texts), WIDTH)) for name in ("token_embd", "output")}
    return write_gguf(
        path, vocabulary.tokens, weights, add,
        width=WIDTH, context=8192, template=TEMPLATE, tokenizer=vocabulary.model, scores=range(0, -len(texts), -1),
    )  # fmt: skip


MESSAGES = [SystemMessage("You choose a tool for the request, and say how sure you are. " * 5)]


@pytest.mark.parametrize("kind", VOCABULARIES, ids=lambda kind: kind.id)
async def test_calls_work_with_every_vocabulary(kind: Vocabulary, llama_cpp_installed: None, tmp_path: Path):
    model = LlamaCppModel.load(str(write_model(tmp_path / "tiny.gguf", kind)), {"n_ctx": 8192, "n_threads": 1})
    finished = 0
    for seed, tools in zip(range(2), palettes(), strict=False):
        offered = [OfferedTool(tool.name, tool.brief, arguments_schema(tool)) for tool in tools[:4]]
        asked = [*MESSAGES, HumanMessage(f"What is the weather in Paris on day {seed}?")]
        sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 600, "seed": seed}
        answer = await model.call(asked, offered, max_calls=2, sampling=sampling, must_call=True)
        finished += not answer.cut_off
        for call in answer.calls:
            assert call.name_probability is not None
            assert 0 < call.name_probability <= 1
            assert call.probabilities.keys() == call.arguments.keys()
            problems = check_call(call.name, call.arguments, frozenset(tool.name for tool in tools), Catalogue(tools))
            assert answer.widened_tools or not problems
    assert finished >= 1
    assert (await model.call(asked, offered, max_calls=1, sampling=sampling)).usage.cached_tokens > 20
    found = await model.word_probabilities(MESSAGES, ("yes", "no"))
    assert sum(found.by_word.values()) == pytest.approx(1)
