"""The learned scorer: small trees over `features`; the scores of one parameter's candidates are compared."""

from functools import cache
from pathlib import Path

from packetgate.deciders.values.features import NAMES, VERSION
from packetgate.state.errors import WeightsError
from packetgate.tools.learned import arrays_of
from packetgate.tools.ranking.trees import Trees

TREES = Path(__file__).with_name("trees.npz")


@cache
def model() -> Trees:
    """Return the trees that are shipped.

    Raises:
        WeightsError: their file is missing or broken, or of other features than this version sees.
    """
    arrays = arrays_of(TREES)
    if arrays["version"] != VERSION or tuple(arrays["features"]) != NAMES:
        raise WeightsError(f"{TREES}: these weights are of other features than these; train them anew")
    return Trees.from_arrays(arrays, "values")
