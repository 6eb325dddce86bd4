"""Every error has a code, and the documentation has every code."""

import re
from pathlib import Path

from packetgate.state import errors
from packetgate.state.codes import Code

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def test_the_page_lists_exactly_the_codes_in_order() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == sorted(code.value for code in Code)


def test_the_code_of_an_error_is_its_class_default_or_a_narrower_one() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.PacketgateError)
    ]
    assert kinds
    for kind in kinds:
        assert kind("why").code is kind.code
        assert kind("why", code=Code.TOOL_FAILED).code is Code.TOOL_FAILED
