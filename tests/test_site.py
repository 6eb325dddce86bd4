"""The documentation site shows the content of the pages in a browser, without requests to other hosts."""

import doctest
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
from markdown_it import MarkdownIt
from support.pages import PAGES, ROOT
from support.programs import require

import packetgate
from docs.site_graph import graph_svg
from packetgate.gate.gate import Gate
from packetgate.graph.diagram import mermaid

CHROMIUM = ("headless=new", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-dev-shm-usage")
LOOK = """
const page = document.querySelector('article').cloneNode(true);
const shown = page.textContent;
page.querySelectorAll('pre, code').forEach(one => one.remove());
return {
  raw: [...shown.matchAll(/graph TD;|flowchart (TD|LR)|stateDiagram-v2/g),
        ...page.textContent.matchAll(/\\|\\s*:?-{3,}:?\\s*\\||^\\s*(!!!|:::) ?\\w+|\\[![A-Z]+\\]/gm)
       ].map(found => found[0]),
  pictures: [...document.images].filter(one => one.complete && !one.naturalWidth).map(one => one.src),
}
"""
"""Errors on a page: text that should be markup, and missing images."""
SCREEN = {"height": 900, "deviceScaleFactor": 1, "mobile": False}
COUNTED = {
    "bullet_list_open": "<ul[ >]",
    "list_item_open": "<li[ >]",
    "table_open": "<table[ >]",
    "fence": "<pre[ >]",
    "heading_open": "<h[1-6][ >]",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *unused: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_page_looks_right_in_a_browser(site: Path, address: str, tmp_path: Path) -> None:
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = require("chromium")
    for argument in (*CHROMIUM, f"user-data-dir={tmp_path}"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options, Service(require("chromedriver")))
    problems = []
    try:
        pages = sorted(site.rglob("index.html"))
        code = [page for page in pages if "." in page.parent.name]
        for page in [*(set(pages) - set(code)), *code[::10]]:  # pages of code are similar
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREEN | {"width": 1280})
            driver.get(urljoin(address, f"{page.parent.relative_to(site)}/"))
            found = driver.execute_script(LOOK)
            for width in (1280, 390):
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREEN | {"width": width})
                found[f"wider than {width}"] = _overflows(driver, width)
            entries = [json.loads(one["message"])["message"] for one in driver.get_log("performance")]
            asked = [one["params"]["request"]["url"] for one in entries if one["method"] == "Network.requestWillBeSent"]
            assert any(url.startswith(address) for url in asked), "the log contains no requests"
            found["requests"] = [url for url in asked if url.startswith("http") and not url.startswith(address)]
            found["console"] = [one["message"] for one in driver.get_log("browser")]
            problems += [f"{page.relative_to(site)}: {kind}: {what}" for kind, what in found.items() if what]
    finally:
        driver.quit()
    assert not problems, "\n".join(problems)


def _overflows(driver: Any, width: int) -> bool:
    """Return whether a page is wider than the window, even at the end of animations."""
    for _ in range(20):
        if driver.execute_script("return document.documentElement.scrollWidth") <= width:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.slow
def test_no_link_is_dead(site: Path) -> None:
    pages = {file: file.read_text() for file in site.rglob("*.html") if file.name != "404.html"}
    anchors = {file: set(re.findall(r'\b(?:id|name)="?([^"\s>]+)', text)) for file, text in pages.items()}
    dead = []
    for file, text in pages.items():
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            if urlsplit(link).scheme:
                continue
            path, anchor = urldefrag(link)
            target = (file.parent / unquote(path)).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (anchor and target in anchors and unquote(anchor) not in anchors[target]):
                dead.append(f"{file.relative_to(site)}: {link}")
    assert len(pages) > 100
    assert not dead


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES[1:] if page.parent.name != "api"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_site_has_the_lists_tables_and_code_of_the_page(page: Path, site: Path) -> None:
    """MkDocs parses Markdown by other rules than GitHub, such as for nested lists."""
    at = page.relative_to(ROOT / "docs" if page.is_relative_to(ROOT / "docs") else ROOT).with_suffix("")
    html = (site / (at.parent if at.name == "index" else at) / "index.html").read_text()
    article = html[html.index("<article") : html.index("</article")]
    tokens = [token.type for token in MarkdownIt("commonmark").enable("table").parse(page.read_text())]
    wanted = {kind: tokens.count(kind) for kind in COUNTED}
    wanted["fence"] -= len(re.findall("^```mermaid$", page.read_text(), re.MULTILINE))
    assert {kind: len(re.findall(tag, article)) for kind, tag in COUNTED.items()} == wanted


@pytest.mark.slow
@pytest.mark.parametrize("notebook", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_page_of_a_notebook_has_its_headings_code_tables_and_pictures(notebook: Path, site: Path) -> None:
    html = (site / "notebooks" / notebook.stem / "index.html").read_text()
    article = html[html.index("<article") : html.index("</article")]
    cells = json.loads(notebook.read_text())["cells"]
    shown = [output.get("data", {"text": ""}) for cell in cells for output in cell.get("outputs", ())]
    headings = [re.findall("^#+ ", "".join(cell["source"]), re.MULTILINE) for cell in cells if "outputs" not in cell]
    tags = ("<h[1-6][ >]", "<table[ >]", "<pre[ >]", "<img |<svg class=.graph")
    assert [len(re.findall(tag, article)) for tag in tags] == [
        sum(map(len, headings)),
        sum("text/html" in data for data in shown),
        sum("outputs" in cell for cell in cells) + sum(data.keys() <= {"text", "text/plain"} for data in shown),
        sum("image/png" in data or "text/markdown" in data for data in shown),
    ]


def test_the_diagram_has_every_stage_and_edge() -> None:
    source = mermaid()
    svg, edges = graph_svg(source), re.findall(r"^\s*(\w+) -\.?->? (\w+);$", source, re.MULTILINE)
    assert svg.count("<path") - svg.count("<marker") + svg.count("\N{CLOCKWISE OPEN CIRCLE ARROW}") == len(edges)
    assert {stage.strip("_") for edge in edges for stage in edge} == {*re.findall(r">(\w+)[^<>]*</text>", svg)}


@pytest.mark.parametrize("name", packetgate.__all__)
def test_the_reference_has_every_public_name(name: str) -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    assert re.search(rf"^::: packetgate\.[\w.]+\.{name}$", pages, re.MULTILINE)


@pytest.mark.parametrize("name", [*packetgate.__all__, "Gate"])
def test_examples_of_docstrings_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    public = Gate if name == "Gate" else getattr(packetgate, name)
    variables = vars(sys.modules[public.__module__]) if hasattr(public, "__module__") else {}
    for example in doctest.DocTestFinder(recurse=False).find(public, name, globs={**variables}):
        assert not doctest.DocTestRunner().run(example).failed
