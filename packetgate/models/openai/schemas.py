"""Change JSON Schemas to what OpenAI-compatible servers accept."""

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

MAX_TEXT_LIMIT, MAX_ITEM_LIMIT = 300, 30
"""Largest length limits that are sent: of texts, in characters, and of arrays."""
DESCRIPTION_CHARS = 1_024
"""Longest description of a tool that OpenAI accepts."""


def without_large_limits(schema: Schema) -> Schema:
    """Return the schema without large limits, which can make a server's grammar fail."""
    most = {
        "minLength": MAX_TEXT_LIMIT,
        "maxLength": MAX_TEXT_LIMIT,
        "minItems": MAX_ITEM_LIMIT,
        "maxItems": MAX_ITEM_LIMIT,
    }

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
    """Return a tool for a request; with `plain`, its schema has only names and types of arguments."""
    schema = without_large_limits(tool.parameters)
    if plain:
        schema = {key: value for key, value in without_keywords(schema, _LIMITS).items() if key in _ROOT}
    function = {"name": tool.name, "description": tool.description[:DESCRIPTION_CHARS], "parameters": schema}
    return {"type": "function", "function": function}
