"""Hooks of MkDocs: files of the repository that pages link to become pages, and diagrams become pictures."""

import base64
import json
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel
from site_graph import graph_svg

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]\[]+)\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
REFERENCE = re.compile(r"^(\[[^\]]+\]: )(?!\w+:|#)([^\s#]+)", re.MULTILINE)
DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALERT = re.compile(r"^> \[!(\w+)\]\n((?:>.*\n?)+)", re.MULTILINE)
"""An admonition as GitHub writes it."""
CODE = """\
---
search: {{exclude: true}}
hide: [toc]
---
# `{name}`

{code}
"""
FENCE = "`````{{.{kind}}}\n{text}\n`````"
LARGEST = 200_000
"""Characters of the largest file that is shown as code."""
TERMINAL_COLOUR = re.compile(r"\x1b\[[\d;]*m")

_uris: dict[str, str] = {}
"""By path in the repository, such as `packetgate/router.py`: the page of the site, `packetgate/router.py.md`."""


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each file of the repository that a page links to, and for those that such a page links to."""
    _uris.clear()
    _uris.update({f"docs/{file.src_uri}": file.src_uri for file in files if not file.inclusion.is_excluded()})
    _uris["README.md"] = "index.md"
    waiting = [(f"docs/{page.src_uri}", page.content_string) for page in files.documentation_pages()]
    while waiting:
        source, text = waiting.pop()
        for target in sorted({*_targets(source, text)} - _uris.keys()):
            if target.startswith("..") or not _is_text(ROOT / target):
                continue
            content, pictures = _content(target)
            _uris[target] = re.sub(r"^docs/|\.(md|ipynb)$", "", target) + ".md"
            for uri, data in {_uris[target]: content, **pictures}.items():
                files.append(File.generated(config, uri, content=data, inclusion=InclusionLevel.NOT_IN_NAV))
            if not content.startswith("---"):
                waiting.append((target, content))
    return files


def on_page_markdown(markdown: str, page: Any, **unused: Any) -> str:
    """Return a page's text with links to pages of the site, admonitions and drawn diagrams."""
    if page.meta.get("hide"):  # code
        return markdown
    own_uri = page.file.src_uri
    source = next(path for path, uri in _uris.items() if uri == own_uri)
    folder = posixpath.dirname(own_uri)

    def linked(found: re.Match[str]) -> str:
        text, target, anchor = found[1], _path(source, found[2]), found[3] or ""
        if target in _uris:
            return f"[{text}]({posixpath.relpath(_uris[target], folder)}{anchor})"
        if target.startswith("..") or not (ROOT / target).exists():
            return found[0]
        return text if target in text else f"{text} (`{target}`)"

    def referred(found: re.Match[str]) -> str:
        uri = _uris.get(_path(source, found[2]))
        return found[1] + (posixpath.relpath(uri, folder) if uri else found[2])

    def admonition(found: re.Match[str]) -> str:
        return f"!!! {found[1].lower()}\n\n" + re.sub(r"^> ?", "    ", found[2], flags=re.MULTILINE)

    markdown = REFERENCE.sub(referred, LINK.sub(linked, markdown))
    return DIAGRAM.sub(lambda found: f"<div>{graph_svg(found[1])}</div>", ALERT.sub(admonition, markdown))


def _path(source: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _targets(source: str, text: str) -> Iterator[str]:
    for found in (*LINK.finditer(text), *REFERENCE.finditer(text)):
        yield _path(source, found[2])


def _is_text(file: Path) -> bool:
    try:
        return file.suffix == ".ipynb" or len(file.read_text()) <= LARGEST
    except (OSError, UnicodeDecodeError):
        return False


def _content(target: str) -> tuple[str, dict[str, bytes]]:
    """Return a file as the text of a page, and the pictures of the page by their place in the site."""
    file = ROOT / target
    if target.endswith(".ipynb"):
        pictures: dict[str, bytes] = {}
        return "\n\n".join(
            _cells(json.loads(file.read_text())["cells"], target.removesuffix(".ipynb"), pictures)
        ), pictures
    if file.suffix == ".md" and file.stem.isupper():  # and not a prompt
        return file.read_text(), {}
    code = FENCE.format(kind=file.suffix.removeprefix(".") or "text", text=file.read_text())
    return CODE.format(name=target, code=code), {}


def _cells(cells: Iterable[dict[str, Any]], place: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """Yield the cells of a notebook and their outputs as Markdown; add its pictures by their place in the site."""
    for cell in cells:
        source = "".join(cell["source"])
        yield source if cell["cell_type"] == "markdown" else FENCE.format(kind="python", text=source)
        for output in cell.get("outputs", ()):
            shown = output.get("data") or {"text/plain": output["text"]}
            if picture := shown.get("image/png"):
                uri = f"{place}_{len(pictures) + 1}.png"
                pictures[uri] = base64.b64decode(picture)
                yield f"![Output of the cell above]({posixpath.basename(uri)})"
            elif formatted := shown.get("text/markdown"):
                yield "".join(formatted)
            elif formatted := shown.get("text/html"):
                yield "".join(formatted).replace("\n", "&#10;")  # a fence in it is no Markdown
            else:
                text = TERMINAL_COLOUR.sub("", "".join(shown["text/plain"])).rstrip()
                yield FENCE.format(kind="text .output", text=text)
