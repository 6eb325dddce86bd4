"""The store of a LangGraph-API server, as LangGraph's own stores are used."""

from collections.abc import Iterable
from typing import Any

from langgraph.store.base import BaseStore, ListNamespacesOp, MatchCondition, Op, PutOp, Result, SearchItem, SearchOp
from langgraph_sdk.client import LangGraphClient

PAGE = 500
"""Items asked for at once."""


class RemoteStore(BaseStore):
    """A server's store, read by prefixes of namespaces, and deleted from."""

    def __init__(self, client: LangGraphClient) -> None:
        self._client = client

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Refuse: a server is only asked on the event loop."""
        raise NotImplementedError("use the store's asynchronous methods")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do one after the other."""
        return [await self._do(op) for op in ops]

    async def _do(self, op: Op) -> Result:
        match op:
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp(match_conditions=(MatchCondition(match_type="prefix", path=path),)):
                return await self._namespaces([str(label) for label in path], op.limit)
            case PutOp(value=None):
                await self._client.store.delete_item(op.namespace, key=op.key)
                return None
            case _:
                raise NotImplementedError(f"{op}: nothing is written into a server's store, and it is read by prefixes")

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        found: list[dict[str, Any]] = []
        while len(found) < op.limit:
            size = min(PAGE, op.limit - len(found))
            answer = await self._client.store.search_items(
                list(op.namespace_prefix), filter=op.filter, limit=size, offset=op.offset + len(found)
            )
            found += [dict(item) for item in answer["items"]]
            if len(answer["items"]) < size:
                break
        return [SearchItem(**{**item, "namespace": tuple(item["namespace"])}) for item in found]

    async def _namespaces(self, prefix: list[str], limit: int) -> list[tuple[str, ...]]:
        answer: Any = await self._client.store.list_namespaces(prefix=prefix, limit=limit)
        return [tuple(one) for one in answer["namespaces"]]
