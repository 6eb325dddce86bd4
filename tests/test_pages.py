"""The documentation is correct: links work, named objects exist, and the tables and the image are current."""

import importlib
import importlib.util
import re
import tomllib
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import get_args, get_type_hints
from xml.etree import ElementTree

import pytest
from support.pages import PAGES, ROOT, anchors_of, commands_of, links_of, steps_of

from benchmarks.tables import FILES, filled
from packetgate.connectors.commands import COMMANDS, load_command
from packetgate.graph import routes
from packetgate.graph.diagram import mermaid
from packetgate.graph.settings import Settings
from packetgate.models.options import option_variables
from packetgate.state.context import RoutingContext

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SOURCE = "".join(file.read_text() for folder in ("packetgate", "benchmarks") for file in (ROOT / folder).rglob("*.py"))
TESTS = "".join(file.read_text() for file in (ROOT / "tests").rglob("*.py"))
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def options() -> dict[str, set[str]]:
    """Return the options of each command."""
    found = {}
    for name, listed in COMMANDS.items():
        command = load_command(name)
        assert command.help.startswith(listed.help.removesuffix(".")), "the line in the list of commands is out of date"
        found[name] = {one for param in command.params for one in (*param.opts, *param.secondary_opts)} | {"--help"}
    return found


OPTIONS = options()


@each_page
def test_links_work(page: Path) -> None:
    for link in links_of(page):
        if link.startswith("https://"):
            continue
        where, _, anchor = link.partition("#")
        target = (page.parent / where).resolve() if where else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors_of(target), link


@each_page
def test_commands_exist_with_their_options(page: Path) -> None:
    for _, *words in commands_of(page, "packetgate"):
        name, *rest = words or ["ask"]
        name = "ask" if " " in name else name
        assert name in COMMANDS, words
        given = {word.partition("=")[0] for word in rest if word.startswith("-") and word.strip("-")}
        assert given <= OPTIONS[name], words


@each_page
def test_modules_and_scripts_exist(page: Path) -> None:
    for _, *words in commands_of(page, "python"):
        if words[0] == "-m":
            assert importlib.util.find_spec(words[1]), words
        else:
            assert (ROOT / words[0]).is_file() or words[0] in {step.file for step in steps_of(page)}, words


@each_page
def test_extras_exist(page: Path) -> None:
    named = re.findall(r"'\.\[([\w,]+)\]'", page.read_text())
    assert {extra for extras in named for extra in extras.split(",")} <= set(EXTRAS)


def test_the_install_page_names_every_extra() -> None:
    rows = re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \|.*\| (yes|no) \|$", (ROOT / "docs/install.md").read_text(), re.MULTILINE
    )
    named = {extra: inside == "yes" for extras, inside in rows for extra in re.findall(r"\w+", extras)}
    full = set(re.findall(r"\w+", EXTRAS["full"][0].partition("[")[2]))
    assert named == {extra: extra in full for extra in EXTRAS if extra != "full"}


def test_nothing_is_installed_from_an_index() -> None:
    """No index has the package, so its texts and errors name a clone."""
    kinds = {".py", ".md", ".ipynb", ".toml", ".yaml"}
    folders = ("packetgate", "docs", "notebooks", "deploy", "benchmarks")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in kinds]
    named = re.compile(r"""(?:pip|uv)\S* (?:install|add)[^\n`]*?\bpacketgate\b|["'`]packetgate\[""")
    assert {file.name: found for file in (*files, *PAGES[:3]) if (found := named.findall(file.read_text()))} == {}


@each_page
def test_variables_are_used_in_the_code(page: Path) -> None:
    read = {f"PACKETGATE_{field.upper()}" for field in (*Settings.model_fields, *RoutingContext.model_fields)}
    read |= {*option_variables(), "PACKETGATE_EMBEDDINGS_BASE_URL", "PACKETGATE_EMBEDDINGS_API_KEY"}
    read |= set(re.findall(r"environ(?:\.get\(|\[)\"(PACKETGATE_[A-Z_]*)\"", TESTS))
    for variable in re.findall(r"PACKETGATE_[A-Z_]*[A-Z]", page.read_text()):
        assert variable in read or re.search(rf"\b{variable}\b", SOURCE), variable


def test_the_first_figures_of_the_readme_are_those_of_its_table() -> None:
    text, _, table = (ROOT / "README.md").read_text().partition("<!-- table")
    rows = re.findall(r"^\| qwen2.5-coder-0.5b.gguf \| .*? \| .*? \| (.*?) \|", table, re.MULTILINE)
    assert re.findall(r"[\d.]+\u00a0%", text) == rows


@pytest.mark.parametrize("page", FILES, ids=lambda page: page.name)
def test_tables_match_the_results(page: Path) -> None:
    text = page.read_text()
    assert "<!-- table: " in text
    assert filled(text) == text, "out of step: python -m benchmarks.tables"
    assert filled(text.replace(" ---: |", " --- |")) == text != text.replace(" ---: |", " --- |")


def test_the_diagram_matches_the_graph() -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text()
    drawn = re.search(r"```mermaid\n(.*?)```", page, re.DOTALL)
    assert drawn is not None
    assert drawn[1].strip() == mermaid().strip()


def test_the_table_of_stages_names_every_stage_and_its_route() -> None:
    text = (ROOT / "docs" / "how-it-works.md").read_text()
    rows = re.findall(r"^\| \[`(\w+)`\]\(\.\./packetgate/nodes/\1\.py\) \|.*\| ([^|]*) \|$", text, re.MULTILINE)
    nexts: dict[str, set[str]] = {}
    for start, end in re.findall(r"^\s(\w+) -\.?->? (\w+);$", mermaid(), re.MULTILINE):
        nexts.setdefault(start, set()).add(end)
    nexts.pop("__start__")
    assert set(nexts) == {stage for stage, _ in rows}
    for stage, where in rows:
        targets = get_args(get_type_hints(getattr(routes, where.strip("`")))["return"]) if "after_" in where else ()
        told = set(targets) or {"__end__" if where == "the end" else where.removeprefix("always ").strip("`")}
        assert told == nexts[stage], stage


def test_the_terminal_page_names_every_command() -> None:
    page = (ROOT / "docs" / "terminal.md").read_text()
    assert set(re.findall(r"^\| `packetgate (\w+)", page, re.MULTILINE)) == set(COMMANDS)


@pytest.mark.slow
def test_the_picture_matches_the_output_of_the_commands() -> None:
    script = _script("docs/record_session.py")
    shown = script.PICTURE.read_text()
    (words, numbers), (kept, kept_numbers) = _words(script.recorded()), _words(shown)
    assert words == kept, "out of step: python docs/record_session.py"
    assert numbers == pytest.approx(kept_numbers, rel=0.03, abs=0.03), "out of step: python docs/record_session.py"
    assert not re.search(r"url\((?!#)|https?://(?!www\.w3\.org)|/tmp|/home|/root", shown)


def test_the_picture_is_compared_by_its_numbers() -> None:
    shown = (ROOT / "docs" / "session.svg").read_text()
    other = re.sub(r"(?<=reviewed&#160;)0\.\d\d", "0.11", shown)
    assert _words(other)[0] == _words(shown)[0]
    assert _words(other)[1] != pytest.approx(_words(shown)[1], rel=0.03, abs=0.03)


def _script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _words(svg: str) -> tuple[Counter[str], list[float]]:
    """Return the words and the ordered numbers of an image, without ids and times, which differ between runs.

    Only the first tool of a palette counts: the others have similar low scores.
    """
    rows = ("".join(one.itertext()) for one in ElementTree.fromstring(svg).iter() if one.tag.endswith("text"))
    text = re.sub(r"(tokens: [\w.]+,)(?: [\w.]+,)*", r"\1", " ".join(" ".join(rows).split()))
    text = re.sub(r"\b[0-9a-f]{8,12}\b|\b[\d,]+\.\d\b|\b[\d,]+ ms\b", "#", text)
    numbers = [float(one.replace(",", "")) for one in re.findall(NUMBER, text)]
    return Counter(re.sub(NUMBER, "#", text).split()), numbers


NUMBER = re.compile(r"\b\d[\d,]*(?:\.\d+)?\b")
