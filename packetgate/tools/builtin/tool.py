"""A tool of our own: an async function, described by its docstring and its annotations."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import cleandoc
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from packetgate.state.routing import Risk
from packetgate.tools.builtin.kinds import suffixes_of
from packetgate.tools.builtin.paths import PathReader
from packetgate.tools.spec.descriptions import brief_of
from packetgate.tools.spec.tool_spec import ToolSpec

BUILT_IN = "built in"
"""How the digest of a built-in server begins; those of others are hexadecimal."""


class Answer(NamedTuple):
    """What a tool answers."""

    text: str
    structured: dict[str, Any] | None = None
    """The same for programs, where it says more than the text."""


@dataclass(frozen=True)
class BuiltinTool:
    """A function under its own name, or another. Where it takes `dry_run`, it can be asked what it would do."""

    function: Callable[..., Awaitable[Answer]]
    risk: Risk
    named: str = ""
    """What it is called, where the function cannot have that name."""
    open_world: bool = False
    """Whether it reaches out of the working folder."""
    reads_on: bool = False
    """Whether it can itself be asked for the rest of what it reads."""
    preview: str = ""
    """The tool, by its canonical name, that reads what this one would replace; its own name: its dry run tells it."""
    paths: tuple[PathReader, ...] = ()
    """Reads the paths in a call as they are meant."""
    takes_kind: str = ""
    """The parameter that takes a word for a kind of files, such as `images`."""

    @property
    def name(self) -> str:
        """The function's, unless it has another."""
        return self.named or self.function.__name__

    @cached_property
    def _arguments(self) -> TypeAdapter[Awaitable[Answer]]:
        function: Any = self.function  # an adapter of a function validates its arguments and calls it
        return TypeAdapter(function)

    def spec(self, server: str) -> ToolSpec:
        """Return the tool as one of that server's."""
        schema = self._arguments.json_schema()
        properties: dict[str, dict[str, Any]] = schema["properties"]
        has_dry_run = properties.pop("dry_run", None) is not None
        for name, described in properties.items():
            del described["title"]
            properties[name] = _plain(described)
        full = cleandoc(self.function.__doc__ or "")
        return ToolSpec(
            name=f"{server}.{self.name}",
            server=server,
            upstream_name=self.name,
            full=full,
            brief=brief_of(full),
            input_schema=schema,
            risk=self.risk,
            risk_holds=True,
            has_dry_run=has_dry_run,
            preview=self.preview,
            open_world=self.open_world,
            reaches_outside=self.open_world,
            meant=self._meant if self.paths else None,
            finds=self._finds if self.paths else None,
            knows=self._knows if self.paths else None,
        )

    def _finds(self, params: dict[str, Any]) -> bool:
        return all(reader.finds(params) for reader in self.paths)

    def _knows(self, parameter: str, word: str) -> float:
        if parameter == self.takes_kind:
            return float(bool(suffixes_of(word)))
        return next((reader.knows(word) for reader in self.paths if reader.parameter == parameter), 0.0)

    def _meant(self, params: dict[str, Any]) -> dict[str, Any]:
        for reader in self.paths:
            params = reader.read(params)
        return params

    async def call(self, params: dict[str, Any]) -> Answer:
        """Call it.

        Raises:
            ValidationError: the arguments are not what it takes.
            ToolFailure: it cannot do what it was asked.
        """
        return await self._arguments.validate_python(params)


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter that may be left out, as if it could not be null as well."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1 or schema.get("default", "") is not None:
        return schema
    return {**options[0], **{name: value for name, value in schema.items() if name not in ("anyOf", "default")}}
