"""A wanted call, checked: repaired where that is safe, and what then stands in its way. Done once for each call."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from state.routing import Correction
from tools.catalogue.catalogue import Catalogue
from tools.checks.repair import repair
from tools.checks.validation import check_call

_MISSES = frozenset({"off_palette", "unknown_tool"})


@dataclass(frozen=True)
class CheckedCall:
    """A call as it was meant."""

    tool_name: str
    params: dict[str, Any]
    repairs: tuple[Correction, ...] = ()
    problems: tuple[Correction, ...] = ()
    """What stands in its way; without any, it can be made."""

    @property
    def misses(self) -> bool:
        """Whether it is of a tool that is not on the palette."""
        return any(one.problem in _MISSES for one in self.problems)


def checked_call(name: str, params: Mapping[str, Any], palette: frozenset[str], catalogue: Catalogue) -> CheckedCall:
    """Return the call as it was meant, with what was repaired and what stands in its way. Blocking."""
    meant = repair(name, params, catalogue)
    problems = check_call(meant.tool_name, meant.params, palette, catalogue)
    return CheckedCall(meant.tool_name, meant.params, meant.corrections, tuple(problems))
