"""Load the shipped weights. A missing, broken or invalid file raises `WeightsError`."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from packetgate.state.errors import WeightsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Form = TypeVar("Form")

DIGITS = 3
"""Decimal places to which scores are rounded before a comparison, because processors differ by up to 1e-4."""


def load_session(path: Path, threads: int = 1) -> Any:
    """Return an ONNX Runtime session for a model. More `threads` help only if several long texts are read at once."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the cores to others
    options.log_severity_level = 3
    with _checked(path):
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@cache
def load_tokenizer(path: Path) -> Any:
    """Return a cached tokenizer without truncation and padding."""
    from tokenizers import Tokenizer

    with _checked(path):
        tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def without_surrogates(text: str) -> str:
    """Return a text with lone surrogates replaced, because a tokenizer does not accept them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def load_arrays(path: Path) -> "dict[str, NDArray[Any]]":
    """Return the arrays of a file."""
    import numpy as np

    with _checked(path), np.load(path, allow_pickle=False) as read:
        return dict(read)


def load_json(path: Path, form: Callable[[Any], Form]) -> Form:
    """Return `form(content)` for the content of a JSON file."""
    with _checked(path):
        return form(json.loads(path.read_text(encoding="utf-8")))


@contextmanager
def _checked(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the libraries' errors have no other common class
        raise WeightsError(f"{path}: these weights are missing or broken; reinstall Packetgate: {error}") from error
