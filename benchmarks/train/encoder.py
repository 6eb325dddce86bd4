"""Fine-tune the sentence encoder with a contrastive loss that makes a request similar to a needed tool, not to others.

The other tools are those of the batch, which has one source and mostly similar tools. The loss masks the other needed
tools of a request, and tools with nearly the same text.
"""

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AutoModel, AutoTokenizer

from benchmarks.ranking.data import Query
from benchmarks.train.data import Source, sources
from benchmarks.train.precision import mixed
from packetgate.reflex.meaning.encoder import encoded_text
from packetgate.tools.spec.tool_spec import ToolSpec

REQUEST_TOKENS = 44
TOOL_TOKENS = 72
BATCH = 64
NEIGHBOURS = 3
"""For each random pair in a batch, the number of added pairs with the nearest tools."""
TEMPERATURE = 0.05
LEARNING_RATE = 6e-5
WARM_UP = 0.1
FROZEN_LAYERS = 2
"""Number of frozen layers from the bottom; the word vectors are frozen too."""
SAME = 0.92
"""Minimum cosine of equal tools, measured with the encoder before training."""
PER_TOOL = {"metatool": 25, "clinc150": 12, "snips": 30, "apibench": 2}
"""Maximum number of requests per tool by source; 12 for other sources."""
DESCRIBED = {"toucan": 2800, "sealtools": 600, "taskbench": 103}
"""Number of tools of a source that yield a request from one part of their text and a target from the rest."""


class Encoder(nn.Module):  # type: ignore[misc]
    """A transformer with mean pooling and vectors of length one."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.body: Any = AutoModel.from_pretrained(folder)
        for part in [self.body.embeddings, *self.body.encoder.layer[:FROZEN_LAYERS]]:
            part.requires_grad_(requires_grad=False)

    def forward(self, texts: Sequence[str], length: int) -> torch.Tensor:
        """Return one vector per text."""
        args = self.tokenizer(list(texts), truncation=True, max_length=length, padding=True, return_tensors="pt")
        states = self.body(**args).last_hidden_state.float()
        mask = args["attention_mask"].unsqueeze(-1).float()
        return nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def vectors(self, texts: Sequence[str], length: int) -> np.ndarray:
        """Return one row per text. Batches contain texts of similar length."""
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        rows = np.zeros((len(texts), self.body.config.hidden_size), np.float32)
        with mixed():
            for start in range(0, len(order), 128):
                part = order[start : start + 128]
                rows[part] = self([texts[at] for at in part], length).float().numpy()
        return rows


class Example:
    """A request, one needed tool, and all needed tools."""

    __slots__ = ("needed", "request", "text", "tool")

    def __init__(self, request: str, tool: str, text: str, needed: frozenset[str]) -> None:
        self.request, self.tool, self.text, self.needed = request, tool, text, needed


def examples(source: Source, draw: random.Random) -> list[Example]:
    """Return a source's examples, limited per tool."""
    by_tool: defaultdict[str, list[Query]] = defaultdict(list)
    for query in source.queries:
        for group in query.wanted:
            known = sorted(group & source.tools.keys())
            if known:
                by_tool[draw.choice(known)].append(query)
    found: list[Example] = []
    for name, queries in by_tool.items():
        text = encoded_text(source.tools[name])
        found += [
            Example(query.text, name, text, frozenset().union(*query.wanted))
            for query in draw.sample(queries, min(len(queries), PER_TOOL.get(source.name, 12)))
        ]
    described = [spec for spec in source.tools.values() if len(spec.brief.split()) > 3]
    sample = draw.sample(described, min(len(described), DESCRIBED.get(source.name, 0)))
    return found + [described_by_itself(spec, draw) for spec in sample]


def described_by_itself(spec: ToolSpec, draw: random.Random) -> Example:
    """Return a request and a target from one tool: its first sentence and the rest, or its name and description."""
    sentence = spec.brief.split(". ")[0]
    if draw.random() < 0.75:
        return Example(sentence, spec.name, encoded_text(replace(spec, brief="")), frozenset([spec.name]))
    bare = replace(spec, upstream_name=" ", server="", server_description="")
    return Example(
        encoded_text(replace(spec, brief="", input_schema={}, server_description="")),
        spec.name,
        encoded_text(bare),
        frozenset([spec.name]),
    )


def batches(found: Sequence[Example], near: np.ndarray, draw: random.Random) -> Iterator[list[int]]:
    """Yield batches of indexes of `found`, each index once; `near` contains the unit vector of each example's tool."""
    left = list(range(len(found)))
    draw.shuffle(left)
    while left:
        if len(left) <= BATCH:
            yield left
            return
        seeds, left = left[: BATCH // (1 + NEIGHBOURS)], left[BATCH // (1 + NEIGHBOURS) :]
        batch, tools = list(seeds), {found[at].tool for at in seeds}
        likeness = near[left] @ near[seeds].T
        taken: set[int] = set()
        for column in range(len(seeds)):
            many = 0
            for place in np.argsort(-likeness[:, column])[:400]:
                at = left[int(place)]
                if at not in taken and found[at].tool not in tools:
                    taken.add(at)
                    tools.add(found[at].tool)
                    many += 1
                    if many == NEIGHBOURS:
                        break
        batch += sorted(taken)
        rest = [at for at in left if at not in taken]
        fill = BATCH - len(batch)
        batch, left = batch + rest[:fill], rest[fill:]
        yield batch


def loss_of(encoder: Encoder, batch: Sequence[Example], near: torch.Tensor) -> torch.Tensor:
    """Return the contrastive loss of a batch, in both directions."""
    requests = encoder([one.request for one in batch], REQUEST_TOKENS)
    tools = encoder([one.text for one in batch], TOOL_TOKENS)
    scores = requests @ tools.T / TEMPERATURE
    also = torch.tensor([[other.tool in one.needed for other in batch] for one in batch])
    also |= (near @ near.T) > SAME
    also &= ~torch.eye(len(batch), dtype=torch.bool)
    scores = scores.masked_fill(also, -1e4)
    wanted = torch.arange(len(batch))
    return (nn.functional.cross_entropy(scores, wanted) + 0.5 * nn.functional.cross_entropy(scores.T, wanted)) / 1.5


def recall_at(encoder: Encoder, source: Source, k: int, limit: int = 400) -> float:
    """Return the share of needed tools among the `k` nearest."""
    names = list(source.tools)
    tools = encoder.vectors([encoded_text(source.tools[name]) for name in names], TOOL_TOKENS)
    queries = random.Random(0).sample(list(source.queries), min(limit, len(source.queries)))
    requests = encoder.vectors([query.text for query in queries], REQUEST_TOKENS)
    best = np.argsort(-(requests @ tools.T), axis=1)[:, :k]
    shares = [
        sum(not group.isdisjoint(names[at] for at in row) for group in query.wanted) / len(query.wanted)
        for query, row in zip(queries, best, strict=True)
    ]
    return float(np.mean(shares))


def train(data: Path, base: str, out: Path, *, seed: int, minutes: float) -> None:
    """Train for one epoch or until the time ends, and write the encoder."""
    torch.manual_seed(seed)
    draw = random.Random(seed)
    encoder = Encoder(base)
    encoder.tokenizer.save_pretrained(out)
    plan: list[tuple[list[Example], torch.Tensor]] = []
    for source in sources(data, "train"):
        found = examples(source, draw)
        if not found:
            continue
        texts = sorted({one.text for one in found})
        at = {text: place for place, text in enumerate(texts)}
        near = encoder.vectors(texts, TOOL_TOKENS)[[at[one.text] for one in found]]
        made = list(batches(found, near, draw))
        print(f"{source.name}: {len(found):,} examples, {len(made)} batches", flush=True)
        plan += [
            ([found[i] for i in batch], torch.from_numpy(near[batch])) for batch in made if len(batch) > BATCH // 4
        ]
    draw.shuffle(plan)
    optimizer = torch.optim.AdamW(
        [one for one in encoder.parameters() if one.requires_grad], lr=LEARNING_RATE, weight_decay=0.01
    )
    started = time.monotonic()
    steps = len(plan)
    encoder.train()
    for step, (batch, near) in enumerate(plan):
        spent = (time.monotonic() - started) / 60
        done = max(step / steps, spent / minutes)
        if done >= 1:
            break
        rate = LEARNING_RATE * min(1.0, (step + 1) / (WARM_UP * steps)) * (1 - done)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(encoder, batch, near)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            print(f"{step}/{steps} {spent:.1f} min loss {loss.item():.3f}", flush=True)
        if step % 20 == 19:
            encoder.body.save_pretrained(out)
    encoder.eval()
    encoder.body.save_pretrained(out)
    show(encoder, list(sources(data, "choose")), "after")


def show(encoder: Encoder, chosen: Sequence[Source], when: str) -> None:
    """Print the quality of retrieval by vectors alone on the sources for model choice."""
    encoder.eval()
    figures = {source.name: recall_at(encoder, source, 5) for source in chosen}
    print(when, "recall@5:", ", ".join(f"{name} {value:.3f}" for name, value in figures.items()), flush=True)


def main() -> None:
    """Train from the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.train.encoder", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--base", required=True, help="folder of the initial sentence encoder")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=35)
    args = parser.parse_args()
    train(args.data, args.base, args.out, seed=args.seed, minutes=args.minutes)


if __name__ == "__main__":
    main()
