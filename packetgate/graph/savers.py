"""Savers that are whole where a turn is stopped: each write is, and a stage that was stopped has none."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata

from packetgate.state.private_names import ERROR_WRITES

T = TypeVar("T")


class Whole(BaseCheckpointSaver[str]):
    """Mixed into a saver: being stopped waits for what is being written, which would else leave a transaction open."""

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Any
    ) -> RunnableConfig:
        """Keep a checkpoint."""
        return await _to_the_end(super().aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a stage came to; of one that was stopped or failed, that alone: it runs again from its start."""
        errors = [write for write in writes if write[0] in ERROR_WRITES]
        await _to_the_end(super().aput_writes(config, errors or writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove a session."""
        await _to_the_end(super().adelete_thread(thread_id))


async def _to_the_end(writing: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(writing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
