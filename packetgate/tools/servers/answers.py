"""Read the result of a call in the protocol's form, whatever form its server gave it: no part is dropped."""

import json
from collections.abc import Callable
from typing import Any

MAX_PARTS = 1_000
"""Parts of an answer that are read: each takes long to parse."""

_FIELDS = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})

Check = Callable[[dict[str, Any]], None]
"""Raises ValueError for a result that is against the protocol."""


def without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object without its nulls: many servers write null for what is absent."""
    return {key: inner for key, inner in value.items() if inner is not None}


def readable_answer(answer: dict[str, Any], check: Check) -> dict[str, Any]:
    """Return the result of a call in the protocol's form, with no more parts than can be read.

    A part of an unknown form becomes a text of its JSON; structured content that is no object becomes one, and so does
    a result that has no content at all.
    """
    if "inputRequests" in answer or answer.get("resultType") not in {None, "complete"}:
        return answer
    kept = without_nulls(answer)
    if "content" not in kept and (others := {key: kept[key] for key in kept.keys() - _FIELDS}):
        kept.setdefault("structuredContent", others)
    parts = kept.get("content", [])
    parts = parts if isinstance(parts, list) else [parts]
    more = len(parts) - MAX_PARTS
    kept["content"] = parts[:MAX_PARTS] + ([_as_text(f"[cut here: {more:,} more parts]")] if more > 0 else [])
    if _is_fit(kept, check) and isinstance(kept.get("structuredContent", {}), dict):
        return kept
    kept["content"] = [_part(part, check) for part in kept["content"]]
    if "isError" in kept:
        kept["isError"] = str(kept["isError"]).lower() in {"true", "1"}
    if not isinstance(kept.get("structuredContent", {}), dict):
        kept["structuredContent"] = {"result": kept["structuredContent"]}
    if not isinstance(kept.get("_meta", {}), dict):
        del kept["_meta"]
    return kept


def _part(part: Any, check: Check) -> dict[str, Any]:
    if not isinstance(part, dict):
        return _as_text(part)
    part = without_nulls(part)
    if isinstance(part.get("annotations"), dict):
        part["annotations"] = without_nulls(part["annotations"])
    if isinstance(part.get("resource"), dict):
        part["resource"] = without_nulls(part["resource"])
    if "text" in part and part.get("type", "text") == "text":
        part |= _as_text(part["text"])
    bare = {key: part[key] for key in part.keys() - {"annotations", "_meta"}}
    return next((one for one in (part, bare) if _is_fit({"content": [one]}, check)), _as_text(part))


def _is_fit(answer: dict[str, Any], check: Check) -> bool:
    try:
        check(answer)
    except ValueError:
        return False
    return True


def _as_text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
