"""Load shipped weights with numpy, ONNX Runtime and tokenizers."""

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packetgate.tools.learned import checked_file

if TYPE_CHECKING:
    from numpy.typing import NDArray


def load_session(path: Path, threads: int = 1) -> Any:
    """Return an ONNX Runtime session for a model. More `threads` help only if several long texts are read at once."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read at import: ONNX Runtime 1.32 reports its use otherwise
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the cores to others
    options.log_severity_level = 3
    with checked_file(path):
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@cache
def load_tokenizer(path: Path) -> Any:
    """Return a cached tokenizer without truncation and padding."""
    from tokenizers import Tokenizer

    with checked_file(path):
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

    with checked_file(path), np.load(path, allow_pickle=False) as read:
        return dict(read)
