"""Find hard negatives: wrong tools that an untrained encoder embeds close to the right tool."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

from benchmarks.train.judging.examples import Example, Labelled, Tool
from benchmarks.train.precision import mixed

NEAREST = 14
ALIKE = 0.7
"""Maximum similarity of a wrong tool to a right tool, because more similar tools may also fit."""
ELSEWHERE = (6, 80)
"""Ranks in other catalogues at which tools have a similar subject but are most likely wrong."""

Vectors = np.ndarray[Any, np.dtype[np.float32]]


class Embedder:
    """Computes sentence vectors with the initial encoder of the training."""

    def __init__(self, base: Path) -> None:
        self._model = AutoModel.from_pretrained(base).eval()
        self._tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
        self._tokenizer.enable_truncation(32)
        self._tokenizer.enable_padding()

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text."""
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found = np.zeros((len(texts), 384), dtype=np.float32)
        with torch.inference_mode(), mixed():
            for start in range(0, len(order), 128):
                part = order[start : start + 128]
                encoded = self._tokenizer.encode_batch([texts[at] for at in part])
                mask = torch.tensor([one.attention_mask for one in encoded])
                hidden = self._model(torch.tensor([one.ids for one in encoded]), mask).last_hidden_state.float()
                mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
                found[part] = torch.nn.functional.normalize(mean).numpy()
        return found


def mined(  # noqa: PLR0917
    source: Labelled, others: Sequence[Tool], vectors: Vectors, embedder: Embedder, rng: random.Random, most: int
) -> Iterator[Example]:
    """Yield each request with a fitting tool, with similar tools, and sometimes with an unrelated tool."""
    names = sorted(source.tools)
    tools = embedder.vectors([source.tools[name].text for name in names])
    at = {name: place for place, name in enumerate(names)}
    limit = 0.99 if source.source == "clinc" else ALIKE
    for request, gold in rng.sample(list(source.requests), min(most, len(source.requests))):
        known = sorted(at[name] for name in gold if name in at)
        if not known:
            for name in rng.sample(names, 3):
                yield Example(source.source, request, source.tools[name], 0.0)
            continue
        right = rng.choice(known)
        yield Example(source.source, request, source.tools[names[right]], 1.0)
        likeness = (tools[known] @ tools.T).max(0)
        near = [place for place in np.argsort(-likeness)[: 2 * NEAREST] if likeness[place] < limit][:NEAREST]
        for place in rng.sample(near, min(len(near), 1 if rng.random() < 0.6 else 2)):
            yield Example(source.source, request, source.tools[names[place]], 0.0)
        if rng.random() < 0.15:
            yield Example(source.source, request, source.tools[rng.choice(names)], 0.0)
        if rng.random() < 0.3:
            foreign = np.argsort(-(vectors @ tools[right]))[rng.randint(*ELSEWHERE)]
            yield Example("elsewhere", request, others[foreign].varied(rng), 0.0, weight=0.7)
