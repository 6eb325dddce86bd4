"""The documentation pages and their code."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_ASSIGNED = re.compile(r"[A-Za-z_]+=")
_BEFORE = {"export"}
"""Words that may precede a command."""
_COMMAND = re.compile(
    r"(?:[A-Za-z_]+=\S+ )*(?:cd|docker|echo|export|langgraph|make|ollama|packetgate|pip|python|uvicorn|uvx) .*"
)
_ENDINGS = {"python": "py", "json": "json"}
"""Maps each kind of block to the suffix of the file that it may be."""


@dataclass(frozen=True)
class Step:
    """A command of a page, or a file that the page prints."""

    text: str
    """The command, or the content of the file."""
    file: str = ""
    shown: tuple[str, ...] = ()
    """The lines below the command on the page: output, and answers to prompts."""
    is_inline: bool = False


def steps_of(page: Path) -> Iterator[Step]:
    """Yield the steps of a page in order; commands inside sentences come last.

    The paragraph above a block names its file; TOML is `packetgate.toml`. In a block of commands, the lines below
    `$ COMMAND` are the terminal output.
    """
    text, inline = "", dict[str, None]()
    for token in _MARKDOWN.parse(page.read_text()):
        text = token.content if token.type == "inline" else text
        inline |= {one.content: None for one in token.children or () if one.type == "code_inline"}
        if token.type != "fence":
            continue
        if token.info in {"toml", "ini"}:
            yield Step(token.content, "packetgate.toml")
        elif token.info in _ENDINGS:
            if named := re.findall(rf"`([\w.-]+\.{_ENDINGS[token.info]})`", text):
                yield Step(token.content, named[-1])
        elif "$ " in token.content[:2]:
            for part in re.split(r"^\$ ", token.content, flags=re.MULTILINE)[1:]:
                command, *shown = part.rstrip().splitlines()
                yield Step(command, shown=tuple(shown))
        else:
            yield from (Step(line) for line in token.content.splitlines() if _COMMAND.fullmatch(line))
    yield from (Step(code, is_inline=True) for code in inline if _COMMAND.fullmatch(code))


def code_of(page: Path) -> Iterator[str]:
    """Yield each piece of a page's inline code, and each line of its fenced blocks."""
    for token in _MARKDOWN.parse(page.read_text()):
        if token.type == "fence":
            yield from token.content.splitlines()
        for child in token.children or ():
            if child.type == "code_inline":
                yield child.content


def links_of(page: Path) -> Iterator[str]:
    """Yield the targets of a page's links and images."""
    for token in _MARKDOWN.parse(page.read_text()):
        for child in token.children or ():
            if child.type in {"link_open", "image"}:
                yield str(child.attrs["href" if child.type == "link_open" else "src"])


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands_of(page: Path, program: str) -> Iterator[list[str]]:
    """Yield the words of each piece of code that is a command of a program, up to a pipe."""
    for code in code_of(page):
        if program not in code:
            continue
        words = shlex.split(code.partition(" | ")[0].removeprefix("$ "), comments=True)
        while words and (_ASSIGNED.match(words[0]) or words[0] in _BEFORE):
            words = words[1:]
        if words[:1] == [program]:
            yield words
