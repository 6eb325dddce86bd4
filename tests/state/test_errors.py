"""Every error has a code, the documentation lists every code, and invalid requests are refused."""

import re
from pathlib import Path

import pytest

from packetgate.state import errors
from packetgate.state.codes import Code
from packetgate.state.errors import RequestError
from packetgate.state.request import MAX_REQUEST_CHARS, check_request, decode_request

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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        *((text, "") for text in ("", " ", "\n\t\r\n", "\u00a0\u2003")),
        ("x" * (MAX_REQUEST_CHARS + 1), "200,001"),
        *(("a\0b", "U[+]0000"), ("a\x7f", "U[+]007F"), ("half \ud83d", "U[+]D83D"), ("\udc80", "U[+]DC80")),
    ],
)
def test_an_empty_long_or_binary_request_is_refused(text: str, names: str):
    with pytest.raises(RequestError, match=names) as caught:
        check_request(text)
    assert caught.value.code == Code.REQUEST_UNUSABLE


@pytest.mark.parametrize(
    "text",
    [
        "x" * MAX_REQUEST_CHARS,
        "two\nlines\tand a tab",
        "Ünïcödé 漢字 עברית 🚪👩‍👩‍👧 \U0010ffff",
        "\ufeffwith a mark",
        "\x1b[1mbold\x1b[0m",
        "{$braces} \\ \"quotes\" 'and' `more`",
    ],
)
def test_surrounding_white_space_is_removed(text: str):
    assert check_request(f" \n {text}\n") == text


@pytest.mark.parametrize("text", ["", "漢字 🚪", "\ufeffx"])
def test_utf8_is_decoded(text: str):
    assert decode_request(text.encode(), "a.txt") == text


@pytest.mark.parametrize(
    ("data", "byte", "offset"),
    [(b"caf\xe9 au lait", "0xe9", 3), ("hello".encode("utf-16"), "0xff", 0), (b"\x7fELF\x80", "0x80", 4)],
)
def test_bytes_that_are_not_utf_8_are_refused_with_their_offset(data: bytes, byte: str, offset: int):
    with pytest.raises(RequestError, match=f"^standard input .*{byte} .*{offset}"):
        decode_request(data, "standard input")
