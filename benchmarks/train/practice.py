"""`python -m benchmarks.train.practice`: learn how people ask for the built-in tools, and write the weights.

With --held-out, the training also uses the held-out catalogue: for the shipped weights, after the weights of the
signals were fitted to that catalogue. Without --held-out, it prints the metrics on the held-out catalogue.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from scipy.optimize import minimize

from benchmarks.train.own import Own, Request, catalogues
from packetgate.reflex.signals import (
    NO_TOOL,
    PRACTICE_WEIGHTS,
    Doubles,
    RequestClassifier,
    request_features,
    word_features,
)

LEAST_SEEN = 3
"""Minimum number of requests that must contain a word."""
PULL = 0.1
"""Strength of the regularisation of the weights towards 0."""
ROUNDS = 400


def main() -> None:
    """Train, print the metrics on left-out requests, and write the weights."""
    parser = argparse.ArgumentParser(prog="benchmarks.train.practice", description=__doc__)
    parser.add_argument("--held-out", action="store_true")
    given = parser.parse_args()
    known, left_out = [*_requests(catalogues())], [*_requests(catalogues(held_out=True))]
    made = learned([*known, *left_out] if given.held_out else known)
    if not given.held_out:
        _report(made, left_out)
    np.savez_compressed(
        PRACTICE_WEIGHTS, tools=np.array(made.tools), words=np.array([*made.words]), table=made.table.astype(np.float16)
    )


def _requests(held: Iterable[Own]) -> Iterator[Request]:
    yield from (request for one in held if "ai.read" in one.tools for request in one.requests)


def learned(requests: Sequence[Request]) -> RequestClassifier:
    """Return the model that fits the requests best."""
    seen = Counter(word for one in requests for word in {*word_features(one.text)})
    words = {word: at for at, word in enumerate(sorted(word for word, count in seen.items() if count >= LEAST_SEEN))}
    tools = tuple(sorted({NO_TOOL, *(one.tool for one in requests)}))
    rows = np.array([request_features(one.text, words) for one in requests])
    wanted = np.eye(len(tools))[[tools.index(one.tool) for one in requests]]
    free = np.ones((rows.shape[1], 1))
    free[-1] = 0

    def loss(flat: Doubles) -> tuple[float, Doubles]:
        table = flat.reshape(rows.shape[1], len(tools))
        scores = rows @ table
        scores -= scores.max(axis=1, keepdims=True)
        powers = np.exp(scores)
        likely = powers / powers.sum(axis=1, keepdims=True)
        value = -float(np.log((likely * wanted).sum(axis=1) + 1e-12).sum()) + PULL * float((free * table**2).sum())
        return value, (rows.T @ (likely - wanted) + 2 * PULL * free * table).ravel()

    found = minimize(
        loss, np.zeros(rows.shape[1] * len(tools)), jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS}
    )
    return RequestClassifier(tools, words, found.x.reshape(rows.shape[1], len(tools)))


def _report(made: RequestClassifier, requests: Sequence[Request]) -> None:
    likely = [made.probabilities(one.text) for one in requests]
    first = [max(one, key=one.__getitem__) for one in likely]
    for title, chosen in (("a tool", True), ("none", False)):
        rows = [
            (one.tool, found) for one, found in zip(requests, first, strict=True) if (one.tool != NO_TOOL) is chosen
        ]
        right = sum(tool == found for tool, found in rows)
        print(f"requests for {title}: {len(rows)}, right {right / max(1, len(rows)):.3f}")


if __name__ == "__main__":
    main()
