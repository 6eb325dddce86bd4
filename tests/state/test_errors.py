"""The hierarchy is the one that its docstring draws."""

import inspect
import re

import pytest

from packetgate.state import errors


def drawn() -> dict[str, str | None]:
    """Return each class of the drawing with the one it hangs below."""
    parents: dict[str, str | None] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"([│├└─ ]*)([A-Z]\w*Error)\b", line)
        if not found:
            continue
        depth = len(found[1])
        path = [(column, name) for column, name in path if column < depth]
        parents[found[2]] = path[-1][1] if path else None
        path.append((depth, found[2]))
    return parents


def defined() -> dict[str, type[Exception]]:
    return {
        name: value
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if value.__module__ == errors.__name__
    }


def test_every_class_is_drawn_and_every_drawn_class_is_there():
    assert set(drawn()) == set(defined())
    assert len(drawn()) > 10


@pytest.mark.parametrize(("name", "parent"), drawn().items())
def test_each_hangs_where_it_is_drawn(name: str, parent: str | None):
    (base,) = defined()[name].__bases__
    assert base.__name__ == (parent or "Exception")
