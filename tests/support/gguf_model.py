"""A GGUF model of a few hundred kilobytes that real llama.cpp loads: random weights, or a scripted answer."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np

WIDTH = 128
"""Embedding width: one constant, 63 random dimensions, and one for each piece of a scripted answer."""
RANDOM = slice(1, 64)
PIECES = 62
CONTEXT = 32_768
ROLES = ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>")
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>{{ message.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def write_tiny_gguf(
    path: Path,
    answer: str | None = None,
    seed: int = 0,
    *,
    terse: bool = False,
    template: str | None = TEMPLATE,
    context: int = CONTEXT,
    phrases: Sequence[str] = (),
) -> Path:
    """Write a llama model with a byte vocabulary, trained on `context` tokens, and with this chat template or none.

    Without `answer`, the model writes random printable text that depends on the prompt and rarely ends. With `answer`,
    it writes exactly this text at temperature 0, and almost always at low temperatures. A `terse` model tends to end
    its answers and its JSON strings. Each of the `phrases` is one token, which keeps prompts with repetitions short.
    """
    pieces = _cut(answer or "")
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *ROLES]
    tokens += [*phrases, *pieces]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL]
    kinds += [gguf.TokenType.CONTROL] * len(ROLES) + [gguf.TokenType.USER_DEFINED] * len([*phrases, *pieces])

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_rope_dimension_count(WIDTH // 4)
        writer.add_unk_token_id(0)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_add_space_prefix(False)

    vocabulary = [*zip(tokens, kinds, strict=True)]
    tensors = _weights(tokens, pieces, seed, terse=terse)
    return write_gguf(path, vocabulary, tensors, add, width=WIDTH, context=context, template=template)


def write_gguf(
    path: Path,
    vocabulary: Sequence[tuple[str, gguf.TokenType]],
    tensors: Mapping[str, np.ndarray],
    add: Callable[[gguf.GGUFWriter], None],
    *,
    width: int,
    context: int,
    template: str | None = None,
    architecture: str = "llama",
    tokenizer: str = "llama",
    scores: Sequence[int] = (),
) -> Path:
    """Write a model with one block; `add` adds the remaining metadata."""
    tokens, kinds = zip(*vocabulary, strict=True)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    if architecture == "llama":
        writer.add_feed_forward_length(width)
        writer.add_head_count(4)
        writer.add_head_count_kv(4)
    writer.add_tokenizer_model(tokenizer)
    writer.add_token_list(tokens)
    writer.add_token_scores([float(score) for score in scores or [0] * len(tokens)])
    writer.add_token_types(kinds)
    add(writer)
    if template is not None:
        writer.add_chat_template(template)
    for name, values in tensors.items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _cut(answer: str) -> list[str]:
    """Cut the answer into distinct pieces, one token each."""
    size = max(4, -(-len(answer) // PIECES))
    pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
    if len(set(pieces)) < len(pieces):
        raise ValueError(f"the answer repeats itself every {size} characters: reword it")
    return pieces


def _weights(tokens: list[str], pieces: list[str], seed: int, *, terse: bool) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)

    def square() -> np.ndarray:
        return random.normal(0, 0.1, (WIDTH, WIDTH))

    embedding = np.zeros((len(tokens), WIDTH))
    embedding[:, 0] = 4
    embedding[:, RANDOM] = random.normal(0, 0.5, embedding[:, RANDOM].shape)
    output = np.zeros_like(embedding)
    output[:, RANDOM] = random.normal(0, 0.2, output[:, RANDOM].shape)
    output[:, 0] = -30
    printable = [tokens.index(f"<0x{byte:02X}>") for byte in range(0x21, 0x7F)]
    output[printable, 0] = 10
    if terse:
        output[tokens.index("<0x22>"), 0] = 13
        output[tokens.index("</s>"), 0] = 14
    if pieces:  # each token of the answer makes the next far more likely than any random token
        chain = [tokens.index("<|assistant|>"), *range(len(tokens) - len(pieces), len(tokens)), tokens.index("</s>")]
        for slot, (token, following) in enumerate(pairwise(chain), start=RANDOM.stop):
            embedding[token, slot] = 100
            output[following, slot] = 50
    block = {f"blk.0.{name}.weight": square() for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    block |= {f"blk.0.{name}.weight": square() for name in ("ffn_gate", "ffn_up", "ffn_down")}
    block |= {f"blk.0.{name}.weight": np.ones(WIDTH) for name in ("attn_norm", "ffn_norm")}
    return {
        "token_embd.weight": embedding,
        **block,
        "output_norm.weight": np.ones(WIDTH),
        "output.weight": output,
    }
