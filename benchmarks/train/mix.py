"""Fit the weights of the ranking's features: boosted ranking trees, on requests that did not train the encoder.

Every source has the same weight. In addition to the mix of all sources, the script stores a mix without each source, to
measure on that source.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from benchmarks.ranking.data import Query
from benchmarks.train.data import Source, sources
from benchmarks.train.trees import trees_of
from packetgate.ranking.bm25 import BY_WORDS, Lexical
from packetgate.reflex.meaning.encoder import SentenceEncoder, StaticEncoder, TextEncoder, Vectors, encoded_text
from packetgate.reflex.meaning.space import COLUMNS, Space, Trees

MOST_REQUESTS = 700
"""Maximum number of requests of one source."""
MORE_IS_BETTER = {
    "bm25f", "bm25f_of_best", "bm25", "bm25_of_best", "covered", "covered_words",
    "cosine", "cosine_below_best", "cosine_deviation", "part_cosine", "part_cosine_below_best",
}  # fmt: skip
LESS_IS_BETTER = {"bm25f_place", "bm25_place", "cosine_place", "part_cosine_place"}
SETTINGS = {
    "objective": "lambdarank",
    "learning_rate": 0.07,
    "num_leaves": 15,
    "max_depth": 6,
    "min_data_in_leaf": 60,
    "feature_fraction": 0.6,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "lambdarank_truncation_level": 10,
    "monotone_constraints": [(name in MORE_IS_BETTER) - (name in LESS_IS_BETTER) for name in COLUMNS],
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 2,
    "verbosity": -1,
}
ROUNDS = 140


@dataclass(frozen=True)
class Fitted:
    """The features of the candidates of a source's requests."""

    rows: np.ndarray
    labels: np.ndarray
    sizes: list[int]
    """Number of candidates of each request."""


def prepared(source: Source, encoder: TextEncoder, kept: Path, seed: int) -> Fitted:
    """Return the features of the candidates of a sample of a source's requests."""
    specs = list(source.tools.values())
    vectors = Vectors(encoder, kept, at_once=len(specs))
    rows = vectors.of([*map(encoded_text, specs)])
    assert rows is not None
    space = Space([spec.name for spec in specs], rows, vectors, _NO_TREES)
    lexical = Lexical(specs)
    queries = random.Random(seed).sample(list(source.queries), min(MOST_REQUESTS, len(source.queries)))
    parts = [part for query in queries if (part := _of_request(query, lexical, space)) is not None]
    return Fitted(
        np.concatenate([rows for rows, _ in parts]),
        np.concatenate([labels for _, labels in parts]),
        [len(labels) for _, labels in parts],
    )


def _of_request(query: Query, lexical: Lexical, space: Space) -> tuple[np.ndarray, np.ndarray] | None:
    names, rows = space.candidates(lexical.parse(query.text, BY_WORDS), lexical)
    wanted = frozenset().union(*query.wanted)
    labels = np.array([name in wanted for name in names], np.int32)
    return (rows, labels) if labels.any() else None


def fitted(parts: Sequence[Fitted], seed: int) -> Trees:
    """Return trees fitted to all parts with equal weights."""
    weights = np.concatenate([np.full(len(one.labels), 1 / len(one.sizes)) for one in parts])
    data = lightgbm.Dataset(
        np.concatenate([one.rows for one in parts]),
        np.concatenate([one.labels for one in parts]),
        group=[size for one in parts for size in one.sizes],
        weight=weights / weights.mean(),
    )
    return trees_of(lightgbm.train({**SETTINGS, "seed": seed}, data, ROUNDS).dump_model())


_NO_TREES = trees_of({"tree_info": [{"tree_structure": {"leaf_value": 0.0}}]})


def main() -> None:
    """Fit the mixes, print the ranking metrics of each source when left out, and store the mixes."""
    parser = argparse.ArgumentParser(prog="benchmarks.train.mix", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--weights", type=Path, required=True, help="folder of the encoder's files and of the mix")
    parser.add_argument("--folds", type=Path, required=True, help="folder for the mixes without one source")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    encoders: dict[str, TextEncoder] = {"fine": SentenceEncoder(args.weights), "coarse": StaticEncoder(args.weights)}
    known: dict[str, dict[str, Fitted]] = {}
    for source in sources(args.data, "mix"):
        print(f"{source.name}: {len(source.queries):,} requests, {len(source.tools):,} tools", flush=True)
        known[source.name] = {
            kind: prepared(source, encoder, args.folds / "vectors.db", args.seed) for kind, encoder in encoders.items()
        }
    args.folds.mkdir(parents=True, exist_ok=True)
    for left_out in [None, *known]:
        arrays: dict[str, Any] = {}
        for kind in encoders:
            trees = fitted([one[kind] for name, one in known.items() if name != left_out], args.seed)
            arrays |= trees.arrays(kind)
            if left_out is not None:
                print(f"{left_out} left out, {kind}: first {first_of(known[left_out][kind], trees):.3f}", flush=True)
        folder = args.weights if left_out is None else args.folds / left_out
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(folder / "mix.npz", **arrays)


def first_of(one: Fitted, trees: Trees) -> float:
    """Return the share of requests that rank a needed tool first, among those with a needed candidate."""
    scores = trees.scores(one.rows)
    ends = np.cumsum(one.sizes)
    hits = [
        one.labels[end - size + int(scores[end - size : end].argmax())]
        for size, end in zip(one.sizes, ends, strict=True)
    ]
    return float(np.mean(hits))


if __name__ == "__main__":
    main()
