"""Check requests as a provider does: names, schemas, and whether each call has a result and each result a call."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")
MAX_TOOLS = 128
NOT_AT_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")


def problem(path: str, body: Mapping[str, Any], tools: Mapping[str, Any]) -> str:
    """Return the problem of an invalid request; empty if the request is valid."""
    if len(tools) > MAX_TOOLS:
        return f"Invalid 'tools': array too long. Expected an array with maximum length {MAX_TOOLS}, got {len(tools)}."
    found = [*_tool_problems(tools)]
    if path == "chat/completions":
        found += _message_problems(body["messages"])
    elif path == "responses" and isinstance(body["input"], list):
        found += _item_problems(body["input"])
    elif path == "generateContent":
        found += _content_problems(body["contents"])
    return found[0] if found else ""


def _tool_problems(tools: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in tools.items():
        if not NAME.fullmatch(name) or (len(name) > 64 and "." not in name):
            yield f"Invalid 'tools[].function.name': {name!r}"
        if schema is None:
            continue
        if schema.get("type") not in {"object", "OBJECT"}:
            yield f"Invalid schema for function {name!r}: schema must be of type 'object', got {schema.get('type')!r}"
        if above := [key for key in NOT_AT_TOP if key in schema]:
            yield f"Invalid schema for function {name!r}: {above[0]!r} at the top level"
        if "OBJECT" in str(schema):
            continue  # Google's own format, which is not JSON Schema
        try:
            jsonschema_rs.validator_for(schema)
        except (jsonschema_rs.ValidationError, ValueError) as error:
            yield f"Invalid schema for function {name!r}: {error}"
        yield from (f"Invalid schema for function {name!r}: {what}" for what in _schema_problems(schema))


def _schema_problems(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in schema:
            yield from _schema_problems(one)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "array" and not {"items", "prefixItems"} & set(schema):
        yield "array schema missing items"
    for value in schema.values():
        yield from _schema_problems(value)


def _message_problems(messages: list[dict[str, Any]]) -> Iterator[str]:
    waiting: list[str] = []
    for place, message in enumerate(messages):
        where = f"messages.[{place}]"
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"Invalid parameter: {where} of role 'tool' must be a response to a preceding 'tool_calls'"
            else:
                waiting.remove(message["tool_call_id"])
            if isinstance(message["content"], list) and any(part["type"] != "text" for part in message["content"]):
                yield f"Invalid content of {where}: a tool message holds text only"
            continue
        if waiting:
            yield f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting} before {where}"
        calls = message.get("tool_calls") or []
        waiting = [call["id"] for call in calls]
        if message["role"] == "assistant" and not calls and message.get("content") is None:
            yield f"Invalid value for 'content' of {where}: expected a string, got null"
        if any(not isinstance(call["function"]["arguments"], str) for call in calls):
            yield f"Invalid type for '{where}.tool_calls': arguments must be a string"
    if waiting:
        yield f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting} at the end"


def _item_problems(items: list[dict[str, Any]]) -> Iterator[str]:
    called: dict[str, bool] = {}
    for item in items:
        if item.get("type") == "function_call":
            called[item["call_id"]] = False
            if not isinstance(item["arguments"], str):
                yield f"Invalid type for the arguments of {item['call_id']}"
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in called:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
            called[item["call_id"]] = True
    yield from (
        f"No tool output found for function call {call}." for call, has_output in called.items() if not has_output
    )


def _content_problems(contents: list[dict[str, Any]]) -> Iterator[str]:
    waiting = 0
    for content in contents:
        answered = sum("functionResponse" in part for part in content["parts"])
        if answered != waiting:
            yield f"The number of function response parts, {answered}, must equal that of the calls before, {waiting}."
        waiting = sum("functionCall" in part for part in content["parts"])
