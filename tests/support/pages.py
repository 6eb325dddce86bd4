"""The documentation pages and their code."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_ASSIGNED = re.compile(r"[A-Za-z_]+=")
_BEFORE = {"export"}
"""Words that may precede a command."""


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
