"""Train the judge's second stage, which judges calls with their arguments in addition to tools.

The training starts from the shipped judge and preserves its judgements of tools. It needs torch, transformers and
onnxscript.
"""

import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import nn
from torch.nn import functional
from transformers import BertConfig, BertModel

from benchmarks.train.exact_products import exact_products
from benchmarks.train.judging.calls import UNKNOWN, Example, packed
from benchmarks.train.judging.export import load_exported
from packetgate.reflex.judge.calls import call_tokens
from packetgate.reflex.judge.judge import (
    CLS,
    MARKER,
    MAX_TOOL_TOKENS,
    PARAMETER_TOKENS,
    REQUEST_TOKENS,
    SEP,
    TOOL_TOKENS,
)
from packetgate.reflex.meaning import encoder as ranking
from packetgate.reflex.weights import load_tokenizer, without_surrogates

SEED, WARM_UP = 20, 0.04


class Pace(NamedTuple):
    """Sizes and rates of the training steps."""

    batch: int
    serving: int
    """Number of examples per batch that preserve the earlier judgements of tools."""
    rate: float
    head_rate: float


PACE, UPPER_PACE = Pace(256, 48, 1.5e-4, 6e-4), Pace(64, 12, 8e-5, 2e-4)
"""The pace for training all layers, and for training only the upper layers, which two cores can manage."""
ARGUMENT_SHARE, SERVING_SHARE = 0.3, 0.1
_BUCKET = 60  # number of batches whose examples are sorted together by length


class CallJudge(nn.Module):  # type: ignore[misc]
    """The encoder with three heads: whether the tool fits, the call is right, and each argument is right."""

    def __init__(self, attention: str = "sdpa") -> None:
        super().__init__()
        size = 384
        config = BertConfig(vocab_size=30_522, hidden_size=size, num_hidden_layers=6, intermediate_size=4 * size)
        config._attn_implementation = attention
        self.encoder = BertModel(config, add_pooling_layer=False)
        self.serves = nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 1))
        self.right = nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 1))
        self.argument = nn.Linear(size, 1)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the log odds that the tool fits (B), the call is right (B) and each argument is right (B, tokens)."""
        hidden = self.encoder(input_ids=ids, attention_mask=mask, token_type_ids=segments).last_hidden_state
        return self.serves(hidden[:, 0])[:, 0], self.right(hidden[:, 0])[:, 0], self.argument(hidden)[:, :, 0]


def restored(exported: Path) -> CallJudge:
    """Return the judge of an exported file, with the precision of its integers, and initialise missing heads."""
    model = CallJudge()
    load_exported(model, exported)
    return model


def export(model: CallJudge, target: Path) -> None:
    """Write the shipped file."""
    exact = CallJudge("eager")
    exact.load_state_dict(model.state_dict())
    ids = torch.randint(1000, 2000, (2, 24))
    whole = target.with_suffix(".float.onnx")
    inputs = ["ids", "mask", "segments"]
    torch.onnx.export(
        exact.eval(),
        (ids, torch.ones_like(ids), torch.zeros_like(ids)),
        str(whole),
        input_names=inputs,
        output_names=["serves", "right", "arguments"],
        dynamic_axes={name: {0: "batch", 1: "tokens"} for name in inputs},
        dynamo=False,
        opset_version=17,
    )
    quantize_dynamic(str(whole), str(target), weight_type=QuantType.QInt8, per_channel=True)
    exact_products(target)
    whole.unlink()


def pack(examples: Sequence[Example], target: Path) -> None:
    """Write the tokens of examples, each text once."""
    tokenizer = load_tokenizer(ranking.WEIGHTS / ranking.VOCABULARY)

    def encode(texts: Sequence[str]) -> list[list[int]]:
        found = tokenizer.encode_batch([without_surrogates(text) for text in texts], add_special_tokens=False)
        return [one.ids for one in found]

    np.savez_compressed(target, **packed(examples, encode))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sequences:
    """Concatenated token sequences on the device, from which batches are gathered."""

    lengths: NDArray[np.int64]
    starts: NDArray[np.int64]
    segments: NDArray[np.int64]
    """Start of the second segment of each sequence."""
    tokens: torch.Tensor
    labels: torch.Tensor
    """For each token: 1 or 0 at the marker of a right or wrong argument, else -1."""

    @classmethod
    def of(cls, rows: Sequence[tuple[list[int], int, dict[int, int]]], device: str) -> "Sequences":
        """Return the sequences of rows (tokens, start of the second segment, labels by position)."""
        lengths = np.array([len(ids) for ids, _, _ in rows])
        starts = np.cumsum(lengths) - lengths
        labels = np.full(int(lengths.sum()), -1, np.int8)
        for start, (_, _, own) in zip(starts, rows, strict=True):
            for place, label in own.items():
                labels[start + place] = label
        tokens = np.concatenate([np.array(ids, np.int32) for ids, _, _ in rows])
        return cls(
            lengths,
            starts,
            np.array([one for _, one, _ in rows]),
            torch.from_numpy(tokens).to(device),
            torch.from_numpy(labels).to(device),
        )

    def batch(self, rows: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return (ids, mask, segments, labels), each of shape (rows, tokens); tokens are a multiple of 16."""
        device = self.tokens.device
        longest = -(-int(self.lengths[rows].max()) // 16) * 16
        places = torch.arange(longest, device=device)[None]
        length, start, second = (
            torch.from_numpy(one[rows]).to(device)[:, None] for one in (self.lengths, self.starts, self.segments)
        )
        mask = places < length
        at = (start + places).clamp(max=len(self.tokens) - 1)
        labels = torch.where(mask, self.labels[at].float(), torch.full((), -1.0, device=device))
        return torch.where(mask, self.tokens[at].long(), 0), mask.long(), ((places >= second) & mask).long(), labels


def sequences(kept: dict[str, NDArray[Any]], device: str) -> tuple[Sequences, Sequences]:
    """Return the packed examples as inputs for the judgement of calls and for the judgement of tools."""
    ends, line_ends = np.cumsum(kept["lengths"].astype(np.int64)), np.cumsum(kept["sizes"].astype(np.int64))

    def text(number: int) -> list[int]:
        found: list[int] = kept["tokens"][ends[number] - kept["lengths"][number] : ends[number]].tolist()
        return found

    calls, tools = [], []
    for end, size in zip(line_ends, kept["sizes"], strict=True):
        line = kept["lines"][end - size : end].tolist()
        request, headline = text(line[0]), text(line[1])
        parts = [line[at : at + 3] for at in range(2, len(line), 3)]
        pieces = [(text(name), kind % 10, text(value - 1) if value else None) for name, kind, value in parts]
        ids, segments = call_tokens(request, headline, pieces)
        markers = [place for place, token in enumerate(ids) if token == MARKER and segments[place]]
        labels = {
            place: 1 - kind // 10 for place, (_, kind, _) in zip(markers, parts, strict=False) if kind // 10 != UNKNOWN
        }
        calls.append((ids, segments.index(1), labels))
        tools.append(_tool_tokens(request, headline, [name for name, _, _ in pieces]))
    return Sequences.of(calls, device), Sequences.of(tools, device)


def _tool_tokens(
    request: list[int], headline: list[int], parameters: list[list[int]]
) -> tuple[list[int], int, dict[int, int]]:
    tool = headline[:TOOL_TOKENS]
    for name in parameters:
        if len(tool) + len(name[:PARAMETER_TOKENS]) + 2 <= MAX_TOOL_TOKENS:
            tool = [*tool, MARKER, *name[:PARAMETER_TOKENS]]
    before = [CLS, *request[:REQUEST_TOKENS], SEP]
    return [*before, *tool, SEP], len(before), {}


def train(packed_examples: Path, start: Path, minutes: float, *, without: str = "", upper: int = 0) -> CallJudge:
    """Train the judge for a number of minutes, and return it.

    Args:
        start: the initial exported judge, whose judgements of tools the training preserves.
        without: prefix of the names of left-out sources.
        upper: number of trained upper layers, with half of the examples from follow-ups; 0: all layers, all examples.
    """
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.enable_cudnn_sdp(False)  # compiles a kernel for each shape, in a third of a second
    kept = dict(np.load(packed_examples))
    calls, tools = sequences(kept, device)
    names = kept["sources"][kept["source"]]
    rows, pace = _rows(names, without, upper > 0, rng), UPPER_PACE if upper else PACE
    right, weight = (torch.from_numpy(kept[one].astype(np.float32)).to(device) for one in ("right", "weight"))
    model, before = restored(start).to(device).train(), restored(start).to(device).eval().requires_grad_(False)
    if upper:
        _freeze(model, upper)
    heads = [one for name, one in model.named_parameters() if name.startswith(("right", "argument"))]
    body = [one for name, one in model.named_parameters() if not name.startswith(("right", "argument"))]
    optimizer = torch.optim.AdamW(
        [{"params": body, "lr": pace.rate}, {"params": heads, "lr": pace.head_rate}], weight_decay=0.01
    )
    rates = [group["lr"] for group in optimizer.param_groups]
    started = reported = time.monotonic()
    seen, losses = 0, []
    for batch in _batches(rows, calls.lengths, rng, pace.batch):
        now = time.monotonic()
        done = (now - started) / (60 * minutes)
        if done >= 1:
            break
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * min(done / WARM_UP + 0.02, (1 - done) / (1 - WARM_UP), 1)
        ids, mask, segments, labels = calls.batch(batch)
        some = tools.batch(rng.permutation(batch)[: pace.serving])[:3]
        with torch.autocast(device, torch.bfloat16):
            _, is_right, arguments = model(ids, mask, segments)
            serves, _, _ = model(*some)
            served, _, _ = before(*some)
        at = torch.from_numpy(batch).to(device)
        of_call = functional.binary_cross_entropy_with_logits(is_right.float(), right[at], weight[at])
        each = functional.binary_cross_entropy_with_logits(arguments.float(), labels.clamp(min=0), reduction="none")
        is_labelled = labels >= 0
        of_arguments = (each * is_labelled).sum() / is_labelled.sum().clamp(min=1)
        of_serving = functional.mse_loss(serves.float(), served.float())
        (of_call + ARGUMENT_SHARE * of_arguments + SERVING_SHARE * of_serving).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen += len(batch)
        losses.append([of_call.detach(), of_arguments.detach(), of_serving.detach()])
        if now - reported > 20:
            means = [round(float(sum(one) / len(one)), 4) for one in zip(*losses, strict=True)]
            said = {
                "epochs": round(seen / len(rows), 2),
                "call, arguments, serving": means,
                "examples/s": int(seen / (now - started)),
            }
            print(json.dumps(said), flush=True)
            reported, losses = now, []
    trained: CallJudge = model.eval().cpu()
    return trained


def _rows(names: NDArray[Any], without: str, upper: bool, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the examples for training. If only upper layers are trained, half of the examples are follow-ups."""
    kept = ~np.char.startswith(names, without) if without else np.full(len(names), fill_value=True)
    if upper:
        follow_ups = np.char.startswith(names, "follow-up")
        kept &= follow_ups | (rng.random(len(names)) < follow_ups.sum() / max(1, (~follow_ups).sum()))
    return np.flatnonzero(kept)


def _freeze(model: CallJudge, upper: int) -> None:
    """Freeze a judge except its last layers and its heads, and switch off dropout."""
    frozen = model.encoder.encoder.layer[: len(model.encoder.encoder.layer) - upper]
    for one in (model.encoder.embeddings, *frozen):
        one.requires_grad_(False)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0


def _batches(
    rows: NDArray[np.int64], lengths: NDArray[np.int64], rng: np.random.Generator, size: int
) -> Iterator[NDArray[np.int64]]:
    """Yield batches of examples with similar lengths, in random order, endlessly."""
    while True:
        order = rng.permutation(rows)
        for start in range(0, len(order), size * _BUCKET):
            part = order[start : start + size * _BUCKET]
            part = part[np.argsort(lengths[part], kind="stable")]
            groups = [part[at : at + size] for at in range(0, len(part), size)]
            random.Random(start).shuffle(groups)
            yield from groups
