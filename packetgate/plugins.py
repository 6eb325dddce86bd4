"""Plug-ins: parts that extend Packetgate.

A plug-in is an object with a `name` and, for each kind of part, a list of such parts. An entry point of the group
`packetgate.plugins` names the object, or `create_router` takes it as an argument. The parts of this distribution
register by entry points too. This module imports no other room, so that every room can ask for its kind of parts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

from packetgate.state.errors import ConfigError

LEFT_OUT = "left out"
COMMANDS = "packetgate.commands"
"""Group of the entry points of commands: each names a `Command`, which is the program's command of that name."""
GROUP = "packetgate.plugins"
"""Group of the entry points."""
KINDS: Mapping[str, str] = {
    "rankers": "packetgate.ranking.ranking:Ranker",
    "proposers": "packetgate.deciders.advice:Proposer",
    "scorers": "packetgate.deciders.advice:Scorer",
    "judges": "packetgate.deciders.advice:FirstCallJudge",
    "deciders": "packetgate.deciders.protocols:Deciders",
    "toolsets": "packetgate.toolsets.servers.server:Toolset",
    "checks": "packetgate.gate.checks:Check",
    "model_kinds": "packetgate.models.kinds:ModelKind",
}
"""Kinds of parts, and the class or the run-time protocol of each."""


@dataclass(frozen=True)
class Plugin:
    """A plug-in. Any other object with a `name` and some of these fields serves as well.

    Examples:
        >>> from packetgate import Verdict
        >>> def no_mail(call, facts):
        ...     if call.tool_name.startswith("mail."):
        ...         return Verdict(effect="ask", why="mails need approval")
        >>> plugin = Plugin("house", checks=[no_mail])
    """

    name: str
    needs: Sequence[str] = ()
    """Modules without which the plug-in is left out."""
    install: str = ""
    """The command that installs these modules, such as `pip install house-plugin`."""
    rankers: Sequence[Any] = ()
    """Rank tools for a request, before the core's ranking by words."""
    proposers: Sequence[Any] = ()
    """Propose calls in addition to a model."""
    scorers: Sequence[Any] = ()
    """Give evidence for a call."""
    judges: Sequence[Any] = ()
    """Judge the first call of a LangChain agent or of an MCP client for a request."""
    deciders: Sequence[Any] = ()
    """`Deciders` for use without a model, and in place of a model that gives no usable answer."""
    toolsets: Sequence[Any] = ()
    """Provide tools."""
    checks: Sequence[Any] = ()
    """Functions `(call, facts) -> Verdict | None`: the gate calls them in addition to its own checks."""
    model_kinds: Sequence[Any] = ()
    """Define the model names with their prefixes. A kind passed as an argument applies to the whole process."""


@dataclass(frozen=True)
class Command:
    """A command of the `packetgate` program. Its imports happen when it runs."""

    function: str
    """Module and name of a function, as `package.module:function`. Its parameters are the command's options (typer).

    Empty if the command cannot be used.
    """
    help: str
    """One line; if the command cannot be used, the reason."""


@dataclass(frozen=True)
class Plugins:
    """Plug-ins that were registered, in order."""

    by_name: Mapping[str, Any] = field(default_factory=dict)
    problems: Sequence[str] = ()
    """One line for each plug-in that cannot be used or is left out."""

    def parts(self, kind: str) -> tuple[Any, ...]:
        """Return the parts of a kind of `KINDS`, in the order of their plug-ins."""
        return tuple(
            part
            for plugin in self.by_name.values()
            for part in getattr(plugin, kind, ())
            if isinstance(part, _form_of(kind))
        )

    def part(self, kind: str) -> Any:
        """Return the first part of a kind, or None."""
        return next(iter(self.parts(kind)), None)

    def wrong_parts(self) -> list[str]:
        """Return one line for each part that does not have the form of its kind. Imports the modules of all kinds."""
        return [
            f"{plugin.name}: {type(part).__name__} is no {form.__name__}, as {kind} must be"
            for kind in KINDS
            for form in [_form_of(kind)]
            for plugin in self.by_name.values()
            for part in getattr(plugin, kind, ())
            if not isinstance(part, form)
        ]


@cache
def installed() -> Plugins:
    """Return the plug-ins of the installed distributions, by name. A broken plug-in does not affect the others."""
    by_name: dict[str, Any] = {}
    problems: list[str] = []
    for point, plugin, problem in _loaded(GROUP, lambda plugin: _problem_of(plugin, by_name)):
        if problem:
            problems.append(f"{point.name} ({point.value}): {problem}")
        else:
            by_name[plugin.name] = plugin
    return Plugins(by_name, tuple(problems))


def installed_commands() -> dict[str, Command]:
    """Return the commands of the installed distributions, by name. The help of a broken command gives the reason."""
    return {
        point.name: Command("", f"Cannot be used ({point.value}): {problem}") if problem else command
        for point, command, problem in _loaded(COMMANDS, _problem_of_command)
    }


def _loaded(group: str, problem_of: Callable[[Any], str]) -> Iterator[tuple[EntryPoint, Any, str]]:
    """Yield a group's entry points, sorted by name, each with its object and its problem (empty if there is none)."""
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        part = None
        try:
            part = point.load()
            problem = problem_of(part)
        except Exception as error:  # noqa: BLE001  whatever a foreign module raises
            problem = f"{type(error).__name__}: {error}"
        yield point, part, problem


def with_plugins(given: Iterable[Any]) -> Plugins:
    """Return these plug-ins, and after them the installed ones with other names.

    Raises:
        ConfigError: a given plug-in cannot be used.
    """
    by_name: dict[str, Any] = {}
    for plugin in given:
        if problem := _problem_of(plugin, by_name):
            raise ConfigError(f"plug-in {getattr(plugin, 'name', plugin)!r}: {problem}")
        by_name[plugin.name] = plugin
    if not by_name:
        return installed()
    if wrong := Plugins(by_name).wrong_parts():
        raise ConfigError(f"plug-in {wrong[0]}")
    return Plugins({**by_name, **{name: one for name, one in installed().by_name.items() if name not in by_name}})


def _problem_of_command(command: Any) -> str:
    if not isinstance(command, Command):
        return f"{type(command).__name__} is no packetgate.plugins.Command"
    module, _, function = command.function.partition(":")
    return "" if module and function else f"{command.function!r} is not `package.module:function`"


def _problem_of(plugin: Any, others: Mapping[str, Any]) -> str:
    """Return why a plug-in cannot be used; empty if it can."""
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not name:
        return f"{type(plugin).__name__} has no name: use packetgate.plugins.Plugin"
    if name in others:
        return f"another plug-in has the name {name!r}"
    lists = [kind for kind in KINDS if not isinstance(getattr(plugin, kind, ()), Sequence)]
    if lists:
        return f"{lists[0]} is no list"
    missing = [module for module in getattr(plugin, "needs", ()) if not _can_import(module)]
    if missing:
        install = getattr(plugin, "install", "")
        return f"{LEFT_OUT}: {', '.join(missing)} cannot be imported" + (f": {install}" if install else "")
    return ""


def _can_import(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


@cache
def _form_of(kind: str) -> type:
    module, _, name = KINDS[kind].partition(":")
    form: type = getattr(import_module(module), name)
    return form
