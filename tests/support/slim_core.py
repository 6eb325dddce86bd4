"""Blocks the packages of the optional parts: a plug-in of pytest (`-p support.slim_core`), or for a program."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec

OPTIONAL = frozenset({"dateparser", "llama_cpp", "numpy", "onnxruntime", "text_to_num", "tokenizers"})


class Blocked:
    """A finder that finds none of them, as if they were not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name.partition(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


if loaded := OPTIONAL & sys.modules.keys():
    raise RuntimeError(f"{', '.join(sorted(loaded))} was imported before")
sys.meta_path.insert(0, Blocked())  # type: ignore[arg-type]
