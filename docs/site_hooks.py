"""Hooks of MkDocs: the site holds no file outside `docs/`, and loads no script from another host to draw a diagram."""

import posixpath
import re
from typing import Any

from packetgate.graph.diagram import svg

LINK = re.compile(r"\[([^\]\[]+)\]\((\.\.?/[^)\s#]*)(#[^)\s]*)?\)")
REFERENCE = re.compile(r"^\[([^\]]+)\]: (\.\.?/\S+)$", re.MULTILINE)
DIAGRAM = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Any, **unused: Any) -> str:
    """Return a page's text with the graph as a picture, and with names of files in place of links outside `docs/`."""
    folder, _, _ = f"docs/{page.file.src_uri}".rpartition("/")

    def replaced(found: re.Match[str]) -> str:
        text, target = found[1], posixpath.normpath(f"{folder}/{found[2]}")
        if target.startswith("docs/"):
            return found[0]
        return text if target in text else f"{text} (`{target}`)"

    for name, _ in REFERENCE.findall(markdown):
        markdown = markdown.replace(f"][{name}]", "]")
    markdown = LINK.sub(replaced, REFERENCE.sub("", markdown))
    return DIAGRAM.sub(lambda _: svg(), markdown)
