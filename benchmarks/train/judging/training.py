"""Train the judge's encoder. This module needs torch, transformers and onnxscript."""

import json
import pickle
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoModel

from benchmarks.train.data import rows
from benchmarks.train.judging.examples import Example, Tool, labelled, of_awareness, of_own, of_sealtools, of_snips
from benchmarks.train.judging.mining import Embedder, mined
from benchmarks.train.judging.synthesis import synthesised
from benchmarks.train.precision import mixed
from packetgate.reflex.judge.judge import MARKER, encode_request, encode_tool, joined_tokens

if TYPE_CHECKING:
    from packetgate.tools.spec.tool_spec import ToolSpec

SEED = 20
BATCH = 32
LEARNING_RATE, HEAD_RATE = 1e-4, 5e-4
WARM_UP = 0.05
CHECKPOINT_SECONDS = 300
MOST = {"metatool": 5000, "apibench": 900, "clinc": 7000}
"""Number of requests of each source that get mined wrong tools. Seal-Tools has its own wrong tools."""
FOREIGN = 1500
"""Number of tools of the unlabelled catalogue that can be wrong tools for other sources."""
SNIPS_UTTERANCES = 5000
SYNTHESISED = 18_000
OWN_TIMES = 4
"""Number of repetitions of each of our own requests, each with different other tools."""
LONGEST = 192
"""Maximum number of tokens of an example. Longer examples are omitted."""


class Judge(nn.Module):  # type: ignore[misc]
    """The encoder with three heads: whether the tool fits, and the start and end of each parameter's value."""

    def __init__(self, base: Path, attention: str = "sdpa") -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(base, attn_implementation=attention, add_pooling_layer=False)
        self.encoder.embeddings.word_embeddings.requires_grad_(False)
        size = self.encoder.config.hidden_size
        self.serves = nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 1))
        self.begin, self.end = nn.Linear(size, size), nn.Linear(size, size)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor, markers: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the logits that the tool fits (B), and of starts and ends (B, parameters, tokens)."""
        hidden = self.encoder(ids, mask, segments).last_hidden_state
        marked = torch.gather(hidden, 1, markers[..., None].expand(-1, -1, hidden.shape[-1]))
        keys = hidden.transpose(1, 2) / hidden.shape[-1] ** 0.5
        return self.serves(hidden[:, 0])[:, 0], self.begin(marked) @ keys, self.end(marked) @ keys


@dataclass(frozen=True)
class Encoded:
    """An example as tokens. A target of -1 is not trained; 0 means that no words fill the parameter."""

    ids: list[int]
    segments: list[int]
    markers: list[int]
    targets: list[tuple[int, int]]
    request: int
    """Number of tokens of the request, including the first token before it."""
    fits: float
    weight: float


def examples(data: Path, base: Path, rng: random.Random, share: float = 1.0) -> list[Example]:
    """Return all examples, shuffled. A `share` below 1 takes a part of every source for a trial run."""
    catalogue = [Tool.of(row) for row in rows(data / "toucan_mcp_catalog" / "tools.jsonl")]
    catalogue = [tool for tool in catalogue if tool.full and tool.full.isascii()]
    embedder = Embedder(base)
    foreign = rng.sample(catalogue, FOREIGN)
    vectors = embedder.vectors([tool.text for tool in foreign])
    found: list[Example] = []
    for source in labelled(data):
        if source.source in MOST:
            found += mined(source, foreign, vectors, embedder, rng, int(share * MOST[source.source]))
        if source.source == "metatool":
            found += of_awareness(data, source.tools, rng)
        if source.source == "sealtools":
            typed = list(source.tools.values())
    for _ in range(2):
        called = list(of_sealtools(data))
        found += [one for one in called if rng.random() < share]
    for _ in range(OWN_TIMES):
        found += of_own(rng)
    spoken = list(of_snips(data, rng))
    found += rng.sample(spoken, int(share * min(len(spoken), 1.8 * SNIPS_UTTERANCES)))
    found += synthesised(catalogue, int(share * SYNTHESISED * 0.65), rng)
    found += synthesised(typed, int(share * SYNTHESISED * 0.35), rng)
    rng.shuffle(found)
    return found


def encoded(example: Example, tokenizer: Tokenizer) -> Encoded | None:
    """Return an example as tokens; None if it is too long."""
    request = encode_request(example.request, tokenizer)
    tool, names = encode_tool(cast("ToolSpec", example.tool), tokenizer)
    ids, segments = joined_tokens(request, tool)
    markers = [place for place, token in enumerate(ids) if token == MARKER and segments[place]]
    if len(ids) > LONGEST:
        return None
    targets = []
    for name in names:
        if example.fits < 0.5 or name not in example.spans:
            targets.append((-1, -1))
            continue
        span = example.spans[name]
        if span is None:
            targets.append((0, 0))
            continue
        inside = [at for at, (start, end) in enumerate(request.offsets, 1) if start < span[1] and end > span[0]]
        targets.append((inside[0], inside[-1]) if inside else (-1, -1))
    return Encoded(ids, segments, markers, targets, len(request.ids) + 1, example.fits, example.weight)


def batches(pool: Sequence[Encoded], rng: random.Random) -> Iterator[dict[str, torch.Tensor]]:
    """Yield batches of examples with similar lengths, in random order."""
    for start in range(0, len(pool), BATCH * 40):
        part = sorted(pool[start : start + BATCH * 40], key=lambda one: len(one.ids))
        groups = [part[at : at + BATCH] for at in range(0, len(part), BATCH)]
        rng.shuffle(groups)
        yield from map(_batch, groups)


def _batch(group: Sequence[Encoded]) -> dict[str, torch.Tensor]:
    longest = max(len(one.ids) for one in group)
    most = max([1, *(len(one.markers) for one in group)])
    return {
        "ids": torch.tensor([_padded(one.ids, longest) for one in group]),
        "mask": torch.tensor([_padded([1] * len(one.ids), longest) for one in group]),
        "segments": torch.tensor([_padded(one.segments, longest) for one in group]),
        "markers": torch.tensor([_padded(one.markers, most) for one in group]),
        "begin": torch.tensor([_padded([b for b, _ in one.targets], most, -1) for one in group]),
        "end": torch.tensor([_padded([e for _, e in one.targets], most, -1) for one in group]),
        "request": torch.tensor([one.request for one in group]),
        "fits": torch.tensor([one.fits for one in group]),
        "weight": torch.tensor([one.weight for one in group]),
    }


def _padded(values: Sequence[int], size: int, fill: int = 0) -> list[int]:
    return [*values, *[fill] * (size - len(values))]


def losses(model: Judge, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two losses: of whether the tool fits, and of the positions of values."""
    with mixed():
        serves, begin, end = model(batch["ids"], batch["mask"], batch["segments"], batch["markers"])
    serving = nn.functional.binary_cross_entropy_with_logits(serves.float(), batch["fits"], batch["weight"])
    outside = torch.arange(begin.shape[-1])[None, None] >= batch["request"][:, None, None]
    pointing = sum(
        nn.functional.cross_entropy(
            logits.float().masked_fill(outside, -1e4).flatten(0, 1), target.flatten(), ignore_index=-1, reduction="sum"
        )
        for logits, target in ((begin, batch["begin"]), (end, batch["end"]))
    )
    return serving, pointing / (2 * (batch["begin"] >= 0).sum().clamp(min=1))


def prepared(data: Path, base: Path, out: Path, rng: random.Random, share: float) -> list[Encoded]:
    """Return the examples as tokens, and store the tokens in `out` for the next run."""
    kept = out / "examples.pickle"
    if kept.exists():
        with kept.open("rb") as file:
            known: list[Encoded] = pickle.load(file)
            return known
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    found = examples(data, base, rng, share)
    pool = [one for one in (encoded(example, tokenizer) for example in found) if one]
    kinds = Counter(f"{one.source} {'serves' if one.fits else 'does not'}" for one in found)
    _say({"examples": len(pool), "kinds": kinds, "tokens": sum(len(one.ids) for one in pool) / len(pool)})
    with kept.open("wb") as file:
        pickle.dump(pool, file)
    return pool


def train(data: Path, base: Path, out: Path, minutes: float, share: float = 1.0, *, resume: int | None = None) -> None:
    """Train for a number of minutes or one epoch, and store the weights regularly.

    With `resume`, training continues from the stored weights and skips this number of examples.
    """
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    rng = random.Random(SEED)
    pool = prepared(data, base, out, rng, share)[resume or 0 :]
    model = Judge(base).train()
    if resume is not None:
        model.load_state_dict(torch.load(out / "judge.pt", weights_only=True))
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in model.encoder.parameters() if p.requires_grad], "lr": LEARNING_RATE},
            {"params": [p for n, p in model.named_parameters() if not n.startswith("encoder")], "lr": HEAD_RATE},
        ],
        weight_decay=0.01,
    )
    rates = [group["lr"] for group in optimizer.param_groups]
    started = kept = reported = time.monotonic()
    steps, total = 0, -(-len(pool) // BATCH)
    sums = [0.0, 0.0, 0]
    for batch in batches(pool, rng):
        done = max((time.monotonic() - started) / (60 * minutes), steps / total)
        if done >= 1:
            break
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * min(done / WARM_UP + 0.02, (1 - done) / (1 - WARM_UP), 1)
        serving, pointing = losses(model, batch)
        (serving + pointing).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
        sums = [sums[0] + serving.item(), sums[1] + pointing.item(), sums[2] + 1]
        now = time.monotonic()
        if now - reported > 20:
            told_of = {"serving": round(sums[0] / sums[2], 4), "pointing": round(sums[1] / sums[2], 4)}
            pace = round(steps * BATCH / (now - started), 1)
            _say({"step": steps, "of": total, "done": round(done, 3), **told_of, "examples/s": pace})
            reported, sums = now, [0.0, 0.0, 0]
        if now - kept > CHECKPOINT_SECONDS:
            save(model, out)
            kept = now
    save(model, out)
    _say({"steps": steps, "minutes": round((time.monotonic() - started) / 60, 1)})


def save(model: Judge, out: Path) -> None:
    """Store the weights in a folder."""
    torch.save(model.state_dict(), out / "judge.pt")


def _say(figures: dict[str, Any]) -> None:
    print(json.dumps(figures), flush=True)
