"""The JSON Schemas that servers accept."""

from typing import Any

from packetgate.models.calling import OfferedTool
from packetgate.models.schemas import AnswerForm, Schema, map_schema, without_keywords

_LIMITS = frozenset(
    {"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "examples"}
)
"""Keywords that some servers refuse or ignore."""
_ROOT = frozenset({"type", "properties", "required", "additionalProperties", "$defs", "definitions"})
"""Keywords that OpenAI accepts at the root of a tool's schema."""

MODEST, MODEST_ITEMS = 300, 30
"""Longest text, in characters, and longest array whose limit is sent to a server."""
DESCRIPTION_CHARS = 1_024
"""Longest description of a tool that OpenAI accepts."""


def without_large_limits(schema: Schema) -> Schema:
    """Return the schema without large limits, which can crash a server's grammar."""
    most = {"minLength": MODEST, "maxLength": MODEST, "minItems": MODEST_ITEMS, "maxItems": MODEST_ITEMS}

    def change(one: Schema) -> Schema:
        return {
            key: value
            for key, value in one.items()
            if key not in most or (isinstance(value, int) and value <= most[key])
        }

    changed: Schema = map_schema(schema, change)
    return changed


def schema_format(form: AnswerForm) -> dict[str, Any]:
    """Return the `response_format` that enforces the form of an answer."""
    return {"type": "json_schema", "json_schema": {"name": form.name, "schema": without_large_limits(form.schema())}}


def openai_tool(tool: OfferedTool, *, plain: bool) -> dict[str, Any]:
    """Return a tool for a request; `plain` gives only names and types of its arguments."""
    schema = without_large_limits(tool.parameters)
    if plain:
        schema = {key: value for key, value in without_keywords(schema, _LIMITS).items() if key in _ROOT}
    function = {"name": tool.name, "description": tool.description[:DESCRIPTION_CHARS], "parameters": schema}
    return {"type": "function", "function": function}
