"""A GGUF file in memory: weights, vocabulary and chat template."""

import ctypes
import logging
import os
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from packetgate.state.errors import ModelError

with suppress(ImportError):  # `check_installed` reports a missing package
    import llama_cpp

ALL_LAYERS = 0x7FFFFFFF
_GGML_LOG_LEVEL_ERROR = 4

_logger = logging.getLogger("packetgate.llamacpp")
_errors: deque[str] = deque(maxlen=16)


class LlamaWeights:
    """Loaded weights, which contexts share. They are freed with the last reference."""

    def __init__(self, path: str, options: Mapping[str, int]) -> None:
        """Load the file; blocks for seconds. Raise ModelError if it cannot be loaded."""
        self.path = path
        self.name = Path(path).name
        layers = options.get("n_gpu_layers", -1)
        with logged_loading(path):
            llama_cpp.llama_backend_init()
            params = llama_cpp.llama_model_default_params()
            params.n_gpu_layers = ALL_LAYERS if layers < 0 else layers
            params.use_extra_bufts = may_repack()
            self.handle: Any = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
            if not self.handle:
                raise MemoryError
        weakref.finalize(self, llama_cpp.llama_model_free, self.handle)
        self.vocab: Any = llama_cpp.llama_model_get_vocab(self.handle)
        self.size: int = llama_cpp.llama_vocab_n_tokens(self.vocab)
        """Number of tokens in the vocabulary."""
        self.trained_context: int = llama_cpp.llama_model_n_ctx_train(self.handle)
        self.can_cut_cache: bool = not (
            llama_cpp.llama_model_is_recurrent(self.handle) or llama_cpp.llama_model_is_hybrid(self.handle)
        )
        """Whether the cache of a prompt can be cut at any token; False for recurrent and hybrid models."""

    @cached_property
    def template(self) -> str | None:
        """The file's chat template (Jinja)."""
        template: bytes | None = llama_cpp.llama_model_chat_template(self.handle, None)
        return template.decode("utf-8", "replace") if template else None

    @cached_property
    def pieces(self) -> tuple[bytes, ...]:
        """The text of every token, empty for control tokens. Takes a second for large vocabularies."""
        return tuple(self._text(token, special=False) for token in range(self.size))

    @cached_property
    def control_texts(self) -> tuple[str, ...]:
        """The texts of control tokens, such as `<|im_end|>`, longest first."""
        texts = {self._text(token, special=True) for token, piece in enumerate(self.pieces) if not piece}
        return tuple(sorted((one.decode("utf-8", "replace") for one in texts if one), key=len, reverse=True))

    def control_text(self, token: int) -> str:
        """Return the text of any token, including control tokens."""
        return self._text(token, special=True).decode("utf-8", "replace")

    @property
    def edges(self) -> tuple[str, str]:
        """The texts of the tokens that begin a prompt and end a turn; empty if there are no such tokens."""
        tokens = llama_cpp.llama_vocab_bos(self.vocab), llama_cpp.llama_vocab_eos(self.vocab)
        begin, end = (self.control_text(one) if one >= 0 else "" for one in tokens)
        return begin, end

    def is_end(self, token: int) -> bool:
        """Whether a token ends the answer."""
        return bool(llama_cpp.llama_vocab_is_eog(self.vocab, token))

    def tokenize(self, text: str | bytes, *, special: bool) -> list[int]:
        """Return the tokens of a text; with `special`, the text of a control token becomes that token. Thread-safe."""
        data = text.encode("utf-8", "replace") if isinstance(text, str) else text
        room = len(data) + 2
        while True:
            tokens = (llama_cpp.llama_token * room)()
            count: int = llama_cpp.llama_tokenize(self.vocab, data, len(data), tokens, room, False, special)
            if count >= 0:
                return list(tokens[:count])
            room = -count

    def _text(self, token: int, *, special: bool) -> bytes:
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            length: int = llama_cpp.llama_token_to_piece(self.vocab, token, buffer, room, 0, special)
            if length >= 0:
                return buffer.raw[:length]
            room = -length


def may_repack() -> bool:
    """Whether llama.cpp may repack weights: on virtual machines that report AMX, its kernels abort the process."""
    with suppress(OSError):
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
        return not {"amx_tile", "hypervisor"} <= flags
    return True


@contextmanager
def logged_loading(path: str) -> Iterator[None]:
    """Log the output of llama.cpp while it loads, and put its first error into the exception.

    Raise ModelError if loading failed (`MemoryError` inside).
    """
    _set_log_callback()
    _errors.clear()
    try:
        yield
    except MemoryError as error:
        why = _errors[0] if _errors else "no reason given"
        raise ModelError(
            f"llama.cpp cannot load {path}: {why}; "
            "download the file again, or try a smaller n_ctx or fewer n_gpu_layers"
        ) from error


@cache
def _set_log_callback() -> Any:
    def log(level: int, text: bytes, _: Any) -> None:
        line = text.decode("utf-8", "replace").strip()
        _logger.debug("%s", line)
        if level == _GGML_LOG_LEVEL_ERROR:
            _errors.append(line)

    callback = llama_cpp.llama_log_callback(log)
    llama_cpp.llama_log_set(callback, None)
    return callback
