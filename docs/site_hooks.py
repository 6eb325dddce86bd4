"""Hooks of MkDocs: replace links to files outside `docs/`, which the site does not hold."""

import posixpath
import re
from typing import Any

LINK = re.compile(r"\[([^\]\[]+)\]\((\.\.?/[^)\s#]*)(#[^)\s]*)?\)")
REFERENCE = re.compile(r"^\[([^\]]+)\]: (\.\.?/\S+)$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **unused: Any) -> str:
    """Return a page's text with names of files in place of links outside `docs/`."""
    folder, _, _ = f"docs/{page.file.src_uri}".rpartition("/")

    def replaced(found: re.Match[str]) -> str:
        text, target = found[1], posixpath.normpath(f"{folder}/{found[2]}")
        if target.startswith("docs/"):
            return found[0]
        return text if target in text else f"{text} (`{target}`)"

    for name, _ in REFERENCE.findall(markdown):
        markdown = markdown.replace(f"][{name}]", "]")
    return LINK.sub(replaced, REFERENCE.sub("", markdown))
