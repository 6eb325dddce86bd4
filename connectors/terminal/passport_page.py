"""A passport as one page that needs nothing else."""

from collections.abc import Sequence

from jinja2 import ChoiceLoader, PackageLoader

from state.html.rendering import environment
from tools.evaluation.cases import load_cases
from tools.evaluation.passport import Passport
from tools.usage.reliability import reliability

STEPS = 40
"""Points of a drawn curve."""


def page(found: Passport, facts: Sequence[tuple[str, str]]) -> str:
    """Return the page as HTML. Blocking."""
    templates = environment(ChoiceLoader([PackageLoader("connectors.terminal"), PackageLoader("state.html")]))
    curves = {
        kind: " ".join(f"{100 * at / STEPS:.1f},{100 - 100 * curve.at(at / STEPS):.1f}" for at in range(STEPS + 1))
        for kind, curve in found.curves.items()
    }
    kinds = [(name, found.figures(kind)) for kind, name in {**load_cases().kinds, "": "all"}.items()]
    shown = templates.get_template("passport.html").render(
        found=found, facts=facts, kinds=kinds, bins=reliability(found.answers), curves=curves
    )
    return f"{shown.strip()}\n"
