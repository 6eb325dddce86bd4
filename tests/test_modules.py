"""No module defines a name twice."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import packetgate

ROOT = Path(packetgate.__file__).parent


def names_of(module: ast.Module) -> Iterator[str]:
    """Yield the top-level names of a module, once per definition."""
    for one in module.body:
        match one:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def test_no_module_defines_a_name_twice() -> None:
    twice = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in ROOT.rglob("*.py")
        for name, count in Counter(names_of(ast.parse(path.read_text("utf-8")))).items()
        if count > 1
    }
    assert twice == set()
