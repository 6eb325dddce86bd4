"""A llama.cpp context: its key-value cache reuses the common prefixes of prompts."""

import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from packetgate.models.llama.weights import LlamaWeights, logged_loading
from packetgate.state.errors import DecisionError

with suppress(ImportError):  # `check_installed` reports a missing package
    import llama_cpp

Logits = npt.NDArray[np.float32]

DEFAULT_CONTEXT = 8192
DEFAULT_BATCH = 512
SLOTS = 8
"""Number of cached prompts, at least one for each stage of a turn; they share the context's cells."""

_NO_ROOM, _DONE = 1, 0  # return codes of llama_decode


@dataclass(eq=False)
class _Slot:
    number: int
    tokens: list[int] = field(default_factory=list)
    used_at: int = 0

    def shared_with(self, prompt: Sequence[int]) -> int:
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self.tokens, prompt, strict=False)))


class LlamaContext:
    """One context of a model. Not thread-safe."""

    def __init__(self, weights: LlamaWeights, options: Mapping[str, int]) -> None:
        requested = options.get("n_ctx", DEFAULT_CONTEXT)
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = min(requested, weights.trained_context) if requested else weights.trained_context
        batch = min(options.get("n_batch", DEFAULT_BATCH), params.n_ctx)
        # llama.cpp aborts the process if a batch has fewer tokens than there are slots
        params.n_batch = params.n_ubatch = max(batch, SLOTS)
        params.n_seq_max = SLOTS
        params.kv_unified = True
        cores = os.cpu_count() or 1
        params.n_threads = options.get("n_threads", max(1, cores // 2))
        # llama.cpp's threads spin while they wait: leave one core to the event loop and the MCP servers
        params.n_threads_batch = options.get("n_threads", max(1, cores - 1))
        # on a CPU, flash attention is slower for several tokens at once
        if not llama_cpp.llama_supports_gpu_offload():
            params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        with logged_loading(weights.path):
            self.handle: Any = llama_cpp.llama_init_from_model(weights.handle, params)
            if not self.handle:
                raise MemoryError
        self._weights = weights
        weakref.finalize(self, _free, self.handle, weights)
        self._memory = llama_cpp.llama_get_memory(self.handle)
        self._batch = llama_cpp.llama_batch_init(params.n_batch, 0, 1)
        weakref.finalize(self, llama_cpp.llama_batch_free, self._batch)
        self._batch_size: int = params.n_batch
        self.size: int = llama_cpp.llama_n_ctx(self.handle)
        """Context size in tokens, for prompt and answer together."""
        self._slots = [_Slot(number) for number in range(SLOTS)]
        self._slot = self._slots[0]
        self._clock = 0

    def read(self, prompt: Sequence[int], cancelled: threading.Event) -> int:
        """Evaluate a prompt, and return how many of its tokens were cached.

        Raise DecisionError if the prompt is empty or longer than the context.
        """
        if not prompt:
            raise DecisionError(f"the prompt for {self._weights.name} is empty: its chat template returned no text")
        if len(prompt) >= self.size:
            raise DecisionError(
                f"the prompt is too long for {self._weights.name}: {len(prompt)} tokens in a context of "
                f"{self.size}; load the model with a larger context: llamacpp:PATH?n_ctx=N"
                f" (trained for at most {self._weights.trained_context})"
            )
        known = self._open_slot(prompt)
        self.append(prompt[known:], cancelled)
        # llama_decode returns before a GPU has finished, and callers measure time
        llama_cpp.llama_synchronize(self.handle)
        return known

    def append(self, tokens: Sequence[int], cancelled: threading.Event | None = None) -> None:
        """Evaluate tokens after the current prompt, until cancelled.

        Raise DecisionError if the context is full, or llama.cpp fails.
        """
        for at in range(0, len(tokens), self._batch_size):
            if cancelled and cancelled.is_set():
                break
            self._evaluate(tokens[at : at + self._batch_size])

    @property
    def room(self) -> int:
        """The number of tokens that still fit the context."""
        return self.size - self.length

    @property
    def length(self) -> int:
        """The number of tokens of the current prompt and answer."""
        return len(self._slot.tokens)

    @property
    def logits(self) -> Logits:
        """The next token's logits, shape (vocabulary,): a view of llama.cpp's memory until the next evaluation."""
        found = llama_cpp.llama_get_logits_ith(self.handle, -1)
        return np.ctypeslib.as_array(found, shape=(self._weights.size,))

    def cut(self, length: int) -> None:
        """Shorten the current prompt and answer to `length` tokens, and restore the logits of the last token."""
        tokens = self._slot.tokens[:length]
        self._cut(self._slot, length - 1)
        self.append(tokens[len(self._slot.tokens) :])

    def _evaluate(self, tokens: Sequence[int]) -> None:
        batch, start = self._batch, len(self._slot.tokens)
        batch.n_tokens = len(tokens)
        for at, token in enumerate(tokens):
            batch.token[at] = token
            batch.pos[at] = start + at
            batch.n_seq_id[at] = 1
            batch.seq_id[at][0] = self._slot.number
            batch.logits[at] = at == len(tokens) - 1
        while (status := llama_cpp.llama_decode(self.handle, batch)) == _NO_ROOM and self._forget_oldest():
            pass
        if status != _DONE:
            for slot in self._slots:
                self._cut(slot, 0)
            why = "its context is full" if status == _NO_ROOM else f"llama.cpp failed with status {status}"
            raise DecisionError(f"{self._weights.name} stopped: {why}; load it with a larger context (?n_ctx=N)")
        self._slot.tokens += tokens

    def _open_slot(self, prompt: Sequence[int]) -> int:
        self._clock += 1
        best = max(self._slots, key=lambda slot: slot.shared_with(prompt))
        shared = min(best.shared_with(prompt), len(prompt) - 1)
        slot, keeps = best, self._weights.can_cut_cache
        # the rest of that slot may be needed again
        if 2 * shared < len(best.tokens) or (not keeps and shared < len(best.tokens)):
            slot = min(self._slots, key=lambda one: one.used_at)
            if slot is not best:
                self._cut(slot, 0)
                if keeps:
                    llama_cpp.llama_memory_seq_cp(self._memory, best.number, slot.number, 0, shared)
                    slot.tokens = list(best.tokens[:shared])
        slot.used_at = self._clock
        self._slot = slot
        self._cut(slot, min(shared, len(slot.tokens)))
        return len(slot.tokens)

    def _forget_oldest(self) -> bool:
        others = [slot for slot in self._slots if slot.tokens and slot is not self._slot]
        if others:
            self._cut(min(others, key=lambda slot: slot.used_at), 0)
        return bool(others)

    def _cut(self, slot: _Slot, length: int) -> None:
        if not llama_cpp.llama_memory_seq_rm(self._memory, slot.number, length, -1):
            llama_cpp.llama_memory_seq_rm(self._memory, slot.number, -1, -1)
            length = 0
        del slot.tokens[length:]


def _free(handle: Any, weights: LlamaWeights) -> None:
    llama_cpp.llama_free(handle)
    del weights
