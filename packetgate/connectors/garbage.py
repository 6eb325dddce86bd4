"""How often garbage is looked for: hardly while a program starts, as most of what is imported stays."""

import gc

STARTING, STARTED = 1_000_000, 100_000
"""New objects after which it is looked for; Python's own figure is 700."""


def hardly() -> None:
    """Look for garbage hardly ever: a fifth of what importing takes would go into that."""
    gc.set_threshold(STARTING)


def seldom() -> None:
    """Look for garbage again, where that was hardly done, and never more among what there is by now."""
    if gc.get_threshold()[0] == STARTING:
        gc.freeze()
        gc.set_threshold(STARTED)
