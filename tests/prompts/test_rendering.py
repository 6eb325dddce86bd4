"""Every template is used, and every use passes exactly the template's fields."""

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Template

import pytest

from packetgate.prompts.rendering import render

PACKAGE = Path(__file__).parents[2] / "packetgate"
NAMES = sorted(file.stem for file in (PACKAGE / "prompts").glob("*.md"))


def template(name: str) -> str:
    return (PACKAGE / "prompts" / f"{name}.md").read_text(encoding="utf-8")


def fields_of(name: str) -> set[str]:
    return set(Template(template(name)).get_identifiers())


def uses() -> Iterator[tuple[str, str, set[str]]]:
    """Yield the place, the template and the fields of each call to `render` in Packetgate."""
    for room in ("models", "tools", "deciders", "nodes", "graph", "connectors"):
        for file in sorted((PACKAGE / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "render":
                    name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else "?"
                    yield f"{file.name}:{node.lineno}", str(name), {str(keyword.arg) for keyword in node.keywords}


def test_every_template_is_used_and_every_used_template_exists():
    assert {name for _, name, _ in uses()} == set(NAMES)


@pytest.mark.parametrize(("place", "name", "given"), list(uses()))
def test_every_use_gives_exactly_the_fields(place: str, name: str, given: set[str]):
    assert given == fields_of(name), place


@pytest.mark.parametrize("name", NAMES)
def test_a_template_renders_with_its_fields(name: str):
    values = {field: f'{{"{field}": "$odd ${{x}} 漢字"}}' for field in fields_of(name)}
    text = render(name, **values)
    assert text == text.strip()
    for value in values.values():
        assert value in text
    rest = text
    for value in values.values():
        rest = rest.replace(value, "")
    assert "$" not in rest
