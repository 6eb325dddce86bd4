"""Reading what is learned and shipped with Packetgate: as it should be, or one clear error."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from packetgate.state.errors import WeightsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Form = TypeVar("Form")

DIGITS = 3
"""Decimal places that scores are rounded to where they leave a model, before anything is compared with them.

Processors add floats in different orders: what the models return differs between them by up to 1e-4.
"""


def session_of(path: Path, threads: int = 1) -> Any:
    """Return an encoder, ready to run in ONNX Runtime.

    Args:
        path: Its file.
        threads: That share the work; more than one pays only where it reads several long texts at once.

    Raises:
        WeightsError: it is missing or broken.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the cores to others
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors share no other class
        raise _broken(path, error) from error


@cache
def tokenizer_of(path: Path) -> Any:
    """Return a tokenizer that cuts no text and pads none, read once.

    Raises:
        WeightsError: it is missing or broken.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # it raises nothing more specific
        raise _broken(path, error) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def readable(text: str) -> str:
    """Return a text as a tokenizer takes it: half a surrogate pair, which no encoding has, is a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def arrays_of(path: Path) -> "dict[str, NDArray[Any]]":
    """Return the arrays of a file.

    Raises:
        WeightsError: it is missing or broken.
    """
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as read:
            return dict(read)
    except Exception as error:  # whatever numpy and zipfile make of a broken file
        raise _broken(path, error) from error


def json_of(path: Path, form: Callable[[Any], Form]) -> Form:
    """Return what `form` makes of a file of JSON.

    Raises:
        WeightsError: it is missing or broken, or of another form.
    """
    try:
        return form(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> WeightsError:
    return WeightsError(f"{path}: these weights are missing or broken; install Packetgate anew: {error}")
