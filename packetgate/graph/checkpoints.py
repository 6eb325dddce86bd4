"""Checkpointers: the packet's serializer, atomic writes, and async methods for sync savers and stores."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.sqlite import SqliteStore

from packetgate.gate.journal import Journal, MemoryJournal
from packetgate.state.errors import ConfigError, PacketError
from packetgate.state.packet import checkpoint_types
from packetgate.state.private_names import ERROR_WRITES, allow_checkpoint_types

_T = TypeVar("_T")

allow_checkpoint_types(checkpoint_types())


class PacketSerializer(JsonPlusSerializer):
    """LangGraph's serializer, which restores only Packetgate's types and messages."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=checkpoint_types())


class AtomicSaver(BaseCheckpointSaver[str]):
    """Mixin for a saver: a cancelled turn waits for the running write, and leaves no writes of the cancelled stage.

    Damaged data raises an error of Packetgate.
    """

    def _database_errors(self) -> AbstractContextManager[None]:
        """Turn errors of the database into errors of Packetgate."""
        return nullcontext()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint."""
        with self._database_errors(), _damaged_state(config):
            stored = await super().aget_tuple(config)
            if stored is not None:
                _ = stored.checkpoint["channel_values"].keys()
            return stored

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints."""
        with self._database_errors(), _damaged_state(config):
            async for item in super().alist(config, **options):
                yield item

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Any
    ) -> RunnableConfig:
        """Store a checkpoint."""
        with self._database_errors():
            return await _finish_before_cancelling(super().aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store a stage's writes. For a failed or cancelled stage, store only the error: the stage runs again."""
        errors = [write for write in writes if write[0] in ERROR_WRITES]
        with self._database_errors():
            await _finish_before_cancelling(super().aput_writes(config, errors or writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a session."""
        with self._database_errors():
            await _finish_before_cancelling(super().adelete_thread(thread_id))


@contextmanager
def _damaged_state(config: RunnableConfig | None) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, NotImplementedError) as error:
        name = (config or {}).get("configurable", {}).get("thread_id")
        what = f"session {name!r}" if name else "a session"
        raise PacketError(f"the stored state of {what} is damaged ({error}): use another session") from error


async def _finish_before_cancelling(writing: Coroutine[Any, Any, _T]) -> _T:
    task = asyncio.ensure_future(writing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def check_journal(journal: Journal | None, checkpointer: object) -> None:
    """Check that the sessions do not outlast the journal.

    Raises:
        ConfigError: the sessions outlast the process, and the journal does not.
    """
    lasts = isinstance(checkpointer, BaseCheckpointSaver) and type(checkpointer) is not InMemorySaver
    if lasts and (journal is None or isinstance(journal, MemoryJournal)):
        raise ConfigError(
            f"{type(checkpointer).__name__} stores sessions beyond this process, so an interrupted change could run"
            " twice: also set `journal` to a file or a database URL"
        )


def async_saver(saver: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """Return the checkpointer. If it has only sync methods, return a copy that runs them in threads."""
    if not isinstance(saver, SqliteSaver) and type(saver).aget_tuple is not BaseCheckpointSaver.aget_tuple:
        return saver
    threaded = copy(saver)
    threaded.__class__ = type(f"{type(saver).__name__}Threaded", (_ThreadedSaver, type(saver)), {})
    return threaded


def async_store(store: BaseStore) -> BaseStore:
    """Return the store. If it has only sync methods, return a wrapper that runs them in threads."""
    return _ThreadedStore(store) if isinstance(store, SqliteStore) else store


class _ThreadedSaver(BaseCheckpointSaver[Any]):
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        for item in await asyncio.to_thread(lambda: [*self.list(config, **options)]):
            yield item

    async def aput(self, *args: Any, **kwargs: Any) -> RunnableConfig:
        return await asyncio.to_thread(self.put, *args, **kwargs)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.to_thread(self.put_writes, *args, **kwargs)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)


class _ThreadedStore(BaseStore):
    def __init__(self, store: BaseStore) -> None:
        self._store = store

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._store.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self._store.batch, ops)
