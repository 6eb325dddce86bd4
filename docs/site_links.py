"""A hook of MkDocs: links to files outside `docs/` become the names of these files, since the site does not hold them."""

import os.path
import re
from typing import Any

LINK = re.compile(r"\[([^\]\[]+)\]\((\.\.?/[^)\s#]*)(#[^)\s]*)?\)")
REFERENCE = re.compile(r"^\[([^\]]+)\]: (\.\.?/\S+)$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page's text without links that leave the site."""
    folder = os.path.dirname(page.file.src_uri)

    def replaced(found: re.Match[str]) -> str:
        text, target = found[1], os.path.normpath(os.path.join("docs", folder, found[2]))
        if target.startswith("docs/"):
            return found[0]
        return text if target in text else f"{text} (`{target}`)"

    outside = {name for name, _ in REFERENCE.findall(markdown)}
    for name in outside:
        markdown = markdown.replace(f"][{name}]", "]")
    return LINK.sub(replaced, REFERENCE.sub("", markdown))
