"""Every imported distribution is declared in the dependencies or in the matching extra."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
PACKAGE = CHECKOUT / "packetgate"
EXTRAS = {
    "middleware/": "agent",
    "models/llama/": "local",
    "reflex/": "reflex",
    "toolsets/builtin/corpus.py": "reflex",
    "connectors/discord/": "discord",
    "connectors/http.py": "serve",
    "connectors/rendering.py": "terminal",
    "connectors/serve/": "serve",
    "connectors/studio.py": "studio",
    "connectors/terminal/": "terminal",
    "connectors/terminal/pulling.py": "hub",
    "lab/": "terminal",
    "graph/journal.py": "postgres",
    "graph/http.py": "studio",
    "graph/shared_results.py": "postgres",
    "graph/leases.py": "postgres",
    "graph/postgres.py": "postgres",
    "graph/storage.py": "postgres",
    "toolsets/servers/logins.py": "keyring",
}
"""The files that may import the packages of an extra."""
PARTS = {
    "fastmcp-slim": "fastmcp",
    "langgraph-api": "langgraph-cli",
    "langgraph-prebuilt": "langgraph",
    "langgraph-sdk": "langgraph",
    "mcp-types": "mcp",
    "py-key-value-aio": "fastmcp",
    "pydantic-core": "pydantic",
}
"""Distributions that belong to the distribution to declare."""


def test_every_import_is_declared_where_it_belongs() -> None:
    owners = owning_distributions()
    owned = {(file, module): owners.get(module) or owners.get(module.partition(".")[0]) for file, module in imports()}
    assert [where for where, owner in owned.items() if owner not in declared(where[0])] == []
    assert names(PYPROJECT["project"]["dependencies"]) <= set(owned.values()), "declared, but never imported"


def test_the_core_needs_few_distributions() -> None:
    assert len(PYPROJECT["project"]["dependencies"]) <= 26


def declared(*paths: str) -> set[str]:
    """Return the distributions that each file may import."""
    extras = [extra for place, extra in EXTRAS.items() if any(path.startswith(place) for path in paths)]
    wanted = [PYPROJECT["project"]["optional-dependencies"][extra] for extra in extras]
    return names([*PYPROJECT["project"]["dependencies"], *(one for few in wanted for one in few)])


def names(requirements: list[str]) -> set[str]:
    return {plain(re.split(r"[\[<>=]", one)[0]) for one in requirements}


def imports() -> Iterator[tuple[str, str]]:
    """Yield each file with each third-party module that it imports, even inside functions."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            of = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            of += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in of:
                if module.partition(".")[0] not in {*sys.stdlib_module_names, PACKAGE.name}:
                    yield file.relative_to(PACKAGE).as_posix(), module


def owning_distributions() -> dict[str, str]:
    """Return the declared distribution of each module; several share `langgraph` and `opentelemetry`."""
    found: dict[str, str] = {}
    for name in declared(*EXTRAS) | PARTS.keys():
        with suppress(PackageNotFoundError):
            for path in (path for path in files(name) or () if path.suffix in {".py", ".pyd", ".so"}):
                module = path.parent if path.name == "__init__.py" else path.with_name(path.name.partition(".")[0])
                found.setdefault(".".join(module.parts), PARTS.get(name, name))
    return found


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
