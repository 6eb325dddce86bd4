"""The form an answer must have: a JSON Schema, and the places in it where the model decides."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from packetgate.models.schemas import Schema, map_schema, rebased
from packetgate.state.printing import compact_json

CONFIDENCE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
ANY_OBJECT: Schema = {"type": "object"}
ANY_TEXT: Schema = {"type": "string"}


@dataclass(frozen=True)
class Choice:
    """A place in the answer where the model decides between values."""

    path: tuple[str, ...]
    """Keys from the outermost object inwards; `*` is any index of an array."""
    options: tuple[str, ...]
    """The values as they stand in the answer, in compact JSON: `true`, `"fs.read"`."""

    @classmethod
    def among(cls, *path: str, values: Iterable[Any]) -> "Choice":
        """Return the choice between these values."""
        return cls(path, tuple(compact_json(value) for value in values))

    def stands_at(self, path: tuple[str | int, ...]) -> bool:
        """Whether `path`, keys and indices of one value of an answer, is this place."""
        return len(path) == len(self.path) and all(
            isinstance(part, int) if wanted == "*" else part == wanted
            for part, wanted in zip(path, self.path, strict=True)
        )


@dataclass(frozen=True)
class AnswerForm:
    """The form of an answer: objects with their keys in the order they are written."""

    name: str
    """What servers are told it is called: letters, digits and underscores."""
    body: Schema
    """JSON Schema; refers to a part as `{"$ref": "#/$defs/PART"}`."""
    parts: Mapping[str, Schema] = field(default_factory=dict)
    """Schemas from elsewhere, such as tools' own; each stands for itself, references and all."""
    choices: tuple[Choice, ...] = ()

    def schema(self, widened: Collection[str] = ()) -> Schema:
        """Return the whole schema in one piece; any object fits the parts that are `widened`."""
        open_to_any = [{"$ref": f"#/$defs/{name}"} for name in widened]
        body = map_schema(self.body, lambda one: ANY_OBJECT if one in open_to_any else one) if widened else self.body
        parts = {name: rebased(part, f"#/$defs/{name}") for name, part in self.parts.items() if name not in widened}
        return {**body, "$defs": parts} if parts else dict(body)


def obj(**properties: Schema) -> Schema:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def text(limit: int) -> Schema:
    """Return the schema of a text of at most `limit` characters."""
    return {"type": "string", "maxLength": limit}
