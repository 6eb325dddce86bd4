"""Decide whether a command line of a well-known program only reads; `command_lines.toml` describes the programs."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from packetgate.tools.text.words import words_of

_STORED: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_AROUND = frozenset("cli cmd command exec execute invoke mcp query read readonly run safe server shell tool".split())
"""Words in a tool's name other than the name of its program."""
_SCRIPT_OPTION = re.compile(r"(?:--expression|-[^\We-]*e)=?(.*)", re.DOTALL)
"""An option with a script, and the script in the same word, as in `-ne1p`."""


class Program(NamedTuple):
    """The subcommands and options of a program that only read."""

    reads: frozenset[str]
    bare: frozenset[str]
    words: re.Pattern[str] | None
    script: re.Pattern[str] | None
    """For a program whose first word, or the value of `-e`, is a script: the scripts that read."""
    options: frozenset[str]
    needs: str
    queried: bool
    """Whether a query of the program is a command line."""

    def only_reads(self, parts: Sequence[str]) -> bool:
        """Return whether a command line, without the program's name, has only subcommands and options that read."""
        if self.needs and not any(part.lstrip("-") == self.needs for part in parts):
            return False
        if "*" in self.options and any(part.startswith("-") for part in parts[:2]):
            return False  # it is not known which of the next words is its value
        words: list[str] = []
        scripts: list[str] = []
        rest = iter(parts)
        for part in rest:
            if not part.startswith("-") or part == "-":
                words.append(part if self.script else part.casefold())
                continue
            takes_value = self._takes_value(part)
            if takes_value is None:
                return False
            value = next(rest, "") if takes_value else ""
            if "e=" in self.options and self.script and (option := _SCRIPT_OPTION.fullmatch(part)):
                scripts.append(option[1] or value)
        if self.script:
            # a script in quotes that no shell removed is an error
            return all(one.startswith("'") or self.script.fullmatch(one) for one in scripts or words[:1])
        return self._allows_words(words, lists="--list" in parts)

    def _takes_value(self, option: str) -> bool | None:
        """Return whether the next word is the option's value; None if the option does not belong to a read."""
        name, has_value, _ = option.lstrip("-").partition("=")
        if not name or name.isdigit():
            return False
        if "*" in self.options:
            return not has_value
        if f"{name}=" in self.options:
            return not has_value
        if name in self.options:
            return False
        if option.startswith("--"):
            return None
        for at, letter in enumerate(name, 1):  # `-rn`, `-n5`
            if f"{letter}=" in self.options:
                return at == len(name)
            if letter not in self.options:
                return None
        return False

    def _allows_words(self, words: Sequence[str], *, lists: bool) -> bool:
        if self.words is not None:
            return self.words.fullmatch("/".join(words)) is not None
        if not words or not (self.reads or self.bare):
            return True
        first = {words[0], "/".join(words[:2])}
        return bool(first & self.reads) or (words[0] in self.bare and (len(words) == 1 or lists))


def _program(name: str) -> Program:
    row = _STORED[_STORED[name].get("like", name)]
    options = f"{row.get('options', '')} {_STORED['every']['options']}"
    reads, bare, known = (frozenset(text.split()) for text in (row.get("reads", ""), row.get("bare", ""), options))
    words, script = (re.compile(row[key], re.VERBOSE) if key in row else None for key in ("words", "script"))
    return Program(reads, bare, words, script, known, row.get("needs", ""), "queried" in row)


PROGRAMS = {name: _program(name) for name in _STORED if name != "every"}


def only_reads(server: str, tool: str, parts: Sequence[str]) -> bool | None:
    """Return whether a command line only reads; None if its program is not known.

    The program is named by the server, by the tool (`git`, `run_git`, or `git_log` with a subcommand), or by the line.
    """
    folder, _, first = parts[0].rpartition("/") if parts else ("", "", "")
    first = first if folder in ("", "/bin", "/usr/bin") else ""
    of_server, of_tool = program_in(server), program_in(tool)
    if name := of_server or of_tool:
        program, words = PROGRAMS[name], words_of(tool)
        after = words[words.index(name) + 1 :] if name in words else words
        subcommands = [word for word in after if word not in _AROUND]
        line, known = parts[first == name :], program.reads | program.bare
        if of_server and {*line[:1]} & {one.partition("/")[0] for one in known}:
            return program.only_reads(line)  # the tool's name only describes it
        if not subcommands or known & {subcommands[0], "/".join(subcommands[:2])}:
            return program.only_reads([*subcommands, *line])
        if of_server:
            return program.only_reads(line)
    return PROGRAMS[first].only_reads(parts[1:]) if first in PROGRAMS else None


def program_in(name: str) -> str:
    """Return the well-known program that the name of a server or tool names first, or an empty string."""
    words = words_of(name)
    at = next((at for at, word in enumerate(words) if word in PROGRAMS), len(words))
    return "".join(words[at : at + 1]) if _AROUND.issuperset(words[:at]) else ""


def is_queried(name: str) -> bool:
    """Return whether a query of a server or tool is a command line of its program."""
    return any(word in PROGRAMS and PROGRAMS[word].queried for word in words_of(name))
