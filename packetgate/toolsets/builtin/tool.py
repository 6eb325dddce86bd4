"""A built-in tool: a function, described by its docstring and annotations."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import cleandoc, iscoroutinefunction
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter

from packetgate.state.routing import Risk
from packetgate.tools.spec.descriptions import brief_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.builtin.files import ToolFailure
from packetgate.toolsets.builtin.paths import PathParameter
from packetgate.toolsets.builtin.tree import suffixes_by_kind

BUILT_IN = "built in"
"""Prefix of the digests of built-in servers; other digests are hexadecimal."""

ExistingFile = Annotated[
    str, Field(description="The file: its path in the working folder, as notes.txt, or only its name.")
]
FileOrFolder = Annotated[
    str, Field(description="The file or folder, for example notes.txt or docs. Left out: the whole working folder.")
]
WhichFiles = Annotated[
    str,
    Field(
        min_length=1,
        max_length=300,
        description="Only files of such names: *.md for Markdown files, *.{jpg,png}, or a part of a name.",
    ),
]
MaxResults = Annotated[int, Field(ge=1, le=1_000, description="Most results to return, for example 3 for the top 3.")]
DryRun = Annotated[bool, Field(description="Only tell what would happen and change nothing. False does it.")]


class ToolAnswer(NamedTuple):
    """The result of a built-in tool."""

    text: str
    structured: dict[str, Any] | None = None
    """The result as JSON, if it contains more than the text."""


@dataclass(frozen=True)
class BuiltinTool:
    """A function that is a tool. With a `dry_run` parameter, it can describe a call without running it."""

    function: Callable[..., str | ToolAnswer] | Callable[..., Awaitable[str | ToolAnswer]]
    """A function that is not async runs in a thread."""
    risk: Risk
    own_name: str = ""
    """The tool's name, if it differs from the function's name."""
    reaches_outside: bool = False
    """Whether the tool reaches outside the working folder."""
    supports_paging: bool = False
    """Whether further calls can return the rest of a long result."""
    paths: tuple[PathParameter, ...] = ()
    """The parameters that take paths."""
    resolve: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Completes the arguments of a tool that has no `paths`. May block."""
    derived_parameters: frozenset[str] = frozenset()
    """The parameters that `resolve` fills in from Packetgate's own records."""
    kind_parameter: str = ""
    """The parameter that takes a kind of files, such as `images`."""

    @property
    def name(self) -> str:
        """The tool's name within its server."""
        return self.own_name or self.function.__name__

    @cached_property
    def _arguments(self) -> TypeAdapter[Any]:
        function: Any = self.function  # the adapter of a function validates the arguments and calls the function
        return TypeAdapter(function)

    def spec(self, server: str) -> ToolSpec:
        """Return the definition of the tool for a server."""
        schema = self._arguments.json_schema()
        properties: dict[str, dict[str, Any]] = schema["properties"]
        has_dry_run = properties.pop("dry_run", None) is not None
        for described in properties.values():
            del described["title"]
            if described.get("default", "") is None:  # null only means that the argument is left out
                del described["default"]
        full = cleandoc(self.function.__doc__ or "")
        return ToolSpec(
            name=f"{server}.{self.name}",
            server=server,
            upstream_name=self.name,
            full=full,
            brief=brief_of(full),
            input_schema=schema,
            risk=self.risk,
            has_fixed_risk=True,
            risk_source="built in",
            has_dry_run=has_dry_run,
            open_world=self.reaches_outside,
            reaches_outside=self.reaches_outside,
            outward=self.reaches_outside,
            returns_untrusted=self.risk is not Risk.WRITE,
            returns_private=self.risk is not Risk.WRITE,
            resolve_arguments=self._resolve_arguments if self.paths else self.resolve,
            derived_parameters=tuple(sorted(self.derived_parameters)),
            paths_exist=(lambda params: all(one.path_exists(params) for one in self.paths)) if self.paths else None,
            path_certainty=self._path_certainty if self.paths else None,
        )

    def _path_certainty(self, parameter: str, word: str) -> float:
        if parameter == self.kind_parameter:
            return float(bool(suffixes_by_kind(word)))
        return sum(one.certainty(word) for one in self.paths if one.parameter == parameter)

    def _resolve_arguments(self, params: dict[str, Any]) -> dict[str, Any]:
        for path_parameter in self.paths:
            params = path_parameter.resolve(params)
        return params

    async def call(self, params: dict[str, Any]) -> ToolAnswer:
        """Call the function.

        Raises:
            ValidationError: the arguments do not fit the parameters.
            ToolFailure: the tool failed, or the system refused an operation.
        """
        try:
            if iscoroutinefunction(self.function):
                result: str | ToolAnswer = await self._arguments.validate_python(params)
            else:
                result = await asyncio.to_thread(self._arguments.validate_python, params)
        except OSError as error:
            task = " ".join([self.name.replace("_", " "), str(params.get("path", ""))]).rstrip()
            raise ToolFailure(f"cannot {task}: {error.strerror or error}") from error
        return ToolAnswer(result) if isinstance(result, str) else result
