"""Hides the packages of the optional parts, as a pytest plug-in (`-p support.slim_core`) or as an import."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

OPTIONAL = frozenset({"dateparser", "llama_cpp", "numpy", "onnxruntime", "tokenizers"})


class SlimPathFinder(PathFinder):
    """Finds the installed packages, except the hidden ones."""

    @classmethod
    def find_spec(cls, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module, or None."""
        return None if fullname.partition(".")[0] in OPTIONAL else super().find_spec(fullname, path, target)


if loaded := OPTIONAL & sys.modules.keys():
    raise RuntimeError(f"{', '.join(sorted(loaded))} was imported before")
sys.meta_path[:] = [SlimPathFinder if finder is PathFinder else finder for finder in sys.meta_path]
