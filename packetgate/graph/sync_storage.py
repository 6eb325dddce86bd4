"""Checkpointers and stores that have only sync methods, for a graph that awaits them: the methods run in threads."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from copy import copy
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.sqlite import SqliteStore


def with_async_methods(saver: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """Return the checkpointer; if it has only sync methods, a copy on the same connection that runs them in threads."""
    if not isinstance(saver, SqliteSaver) and type(saver).aget_tuple is not BaseCheckpointSaver.aget_tuple:
        return saver
    made = copy(saver)
    made.__class__ = type(f"{type(saver).__name__}InThreads", (_SaverInThreads, type(saver)), {})
    return made


def store_with_async_methods(store: BaseStore) -> BaseStore:
    """Return the store; if it has only sync methods, one that runs them in threads."""
    return _StoreInThreads(store) if isinstance(store, SqliteStore) else store


class _SaverInThreads(BaseCheckpointSaver[Any]):
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(self, config: RunnableConfig | None, **narrowed: Any) -> AsyncIterator[CheckpointTuple]:
        for one in await asyncio.to_thread(lambda: [*self.list(config, **narrowed)]):
            yield one

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Any
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)


class _StoreInThreads(BaseStore):
    def __init__(self, store: BaseStore) -> None:
        self._store = store

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._store.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self._store.batch, ops)
