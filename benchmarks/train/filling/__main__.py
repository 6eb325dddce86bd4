"""`python -m benchmarks.train.filling DATA`: fit and write the trees. `--folds N` only measures, with folds by tool.

Each fold leaves out some tools of Seal-Tools and of our own requests. No fold uses the held-out tools of Seal-Tools.
"""

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.train.filling import examples as known
from benchmarks.train.filling.examples import Example
from benchmarks.train.filling.fitting import NOW, fit, groups, same
from packetgate.reflex.meaning.space import Trees
from packetgate.reflex.values import filling
from packetgate.reflex.values.features import FEATURE_NAMES, FEATURES_VERSION, TREES
from packetgate.reflex.values.parameters import Parameter, parameters_of

UTTERANCES, MADE = 500, 2_500
CAPITALISED = 0.5
"""Share of the examples that get a capital first letter."""
UNDESCRIBED = 0.15
"""Share of the examples whose tools keep only names and types."""


def main() -> None:
    """Train, or measure by folds."""
    parser = argparse.ArgumentParser(prog="benchmarks.train.filling", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--all-folds", action="store_true")
    parser.add_argument("--errors", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(1)
    own, seal = [*known.own()], [*known.sealtools(args.data)]
    pointed = [*known.pointed(args.data, rng, utterances=UTTERANCES, made=MADE)]
    strangers = [one for example in seal[:400] for one in parameters_of(example.tool)]
    if not args.folds:
        made = _trained([*own, *seal, *pointed], strangers, rng)
        np.savez_compressed(TREES, version=FEATURES_VERSION, features=np.array(FEATURE_NAMES), **made.arrays("values"))
        sys.stdout.write(f"{len(made.feature)} trees\n")
        return
    tools = sorted({one.tool.name for one in (*own, *seal)})
    rng.shuffle(tools)
    fold = {name: at % args.folds for at, name in enumerate(tools)}
    found: list[tuple[Example, dict[str, Any]]] = []
    for at in range(args.folds if args.all_folds else 1):
        kept = [one for one in (*own, *seal) if fold[one.tool.name] != at]
        model = _trained([*kept, *pointed], strangers, rng)
        with patch.object(filling, "model", lambda model=model: model):
            tested = [one for one in (*own, *seal) if fold[one.tool.name] == at]
            found += [(one, filling.fill_parameters(one.tool, one.request, now=NOW).params) for one in tested]
    for title, kept_rows in (
        ("own", [row for row in found if row[0].source == "own"]),
        ("Seal-Tools, one call", [row for row in found if row[0].source == "sealtools" and row[0].weight == 1]),
        ("Seal-Tools, several", [row for row in found if row[0].source == "sealtools" and row[0].weight < 1]),
    ):
        _report(title, kept_rows, 0 if "several" in title else args.errors)


def _trained(examples: Sequence[Example], strangers: list[Parameter], rng: random.Random) -> Trees:
    written = [known.capitalised(one) if rng.random() < CAPITALISED else one for one in examples]
    mixed = [known.with_strangers(one, strangers, rng) if rng.random() < 0.3 else one for one in written]
    bare = [known.undescribed(one) if rng.random() < UNDESCRIBED else one for one in mixed]
    return fit(groups(bare, rng))


def _report(title: str, found: Sequence[tuple[Example, dict[str, Any]]], errors: int) -> None:
    right = [_same(params, one.arguments, strictly=True) for one, params in found]
    loose = [_same(params, one.arguments) for one, params in found]
    count = max(1, len(found))
    print(f"{title}: {len(found)} requests, all right {sum(right) / count:.3f}, loosely {sum(loose) / count:.3f}")
    for (one, params), holds in zip(found, loose, strict=True):
        if not holds and errors > 0:
            errors -= 1
            print(f"  {one.request}\n    {one.tool.name} {params}\n    wanted {dict(one.arguments)}")


def _same(found: Any, wanted: Any, *, strictly: bool = False) -> bool:
    if isinstance(found, dict) and isinstance(wanted, dict | Mapping):
        return {*found} == {*wanted} and all(_same(found[name], wanted[name], strictly=strictly) for name in found)
    return same(found, wanted, strictly=strictly)


if __name__ == "__main__":
    main()
