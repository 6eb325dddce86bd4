import pytest

from packetgate.state.errors import RequestError
from packetgate.state.request import MAX_REQUEST_CHARS, check_request, decode_request


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n", "\u00a0\u2003"])
def test_nothing_is_no_request(text: str):
    with pytest.raises(RequestError, match=r"the request is empty: say what you want, for example"):
        check_request(text)


@pytest.mark.parametrize("length", [MAX_REQUEST_CHARS + 1, 1_000_000])
def test_too_long_says_how_long_and_what_to_do(length: int):
    with pytest.raises(RequestError, match=rf"{length:,} characters, the limit is 200,000: put the text into a file"):
        check_request("x" * length)


def test_the_limit_itself_is_allowed_and_counts_without_the_space_around():
    assert check_request(" \n" + "x" * MAX_REQUEST_CHARS + "\n ") == "x" * MAX_REQUEST_CHARS


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a\0b", "U+0000"),
        ("\x01", "U+0001"),
        ("a\x7f", "U+007F"),
        ("a\b", "U+0008"),
        ("half \ud83d", "U+D83D"),
        ("\udc80 from a bad byte", "U+DC80"),
        ("\udfff", "U+DFFF"),
    ],
)
def test_what_is_not_text_is_named(text: str, named: str):
    with pytest.raises(RequestError, match=rf"not text: it holds the character {named.replace('+', '[+]')}; send text"):
        check_request(text)


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "two\nlines\tand a tab",
        "Ünïcödé 漢字 עברית",
        "🚪👩‍👩‍👧 \U0010ffff",
        "\ufeffwith a mark",
        "\x1b[1mbold\x1b[0m",
        "{$braces} \\ \"quotes\" 'and' `more`",
    ],
)
def test_text_is_taken_as_it_is(text: str):
    assert check_request(f"  {text}\n") == text


@pytest.mark.parametrize("text", ["", "hello", "漢字 🚪", "\ufeffx"])
def test_utf8_is_decoded(text: str):
    assert decode_request(text.encode(), "a.txt") == text


@pytest.mark.parametrize(
    ("data", "byte", "offset"),
    [
        (b"caf\xe9 au lait", "0xe9", 3),
        ("hello".encode("utf-16"), "0xff", 0),
        (b"\xed\xa0\x80", "0xed", 0),
        (b"ok \xe6\xbc", "0xe6", 3),
        (b"\x7fELF\x80", "0x80", 4),
    ],
)
def test_other_bytes_are_named_with_their_place(data: bytes, byte: str, offset: int):
    with pytest.raises(
        RequestError, match=rf"^standard input is not UTF-8 text: byte {byte} at offset {offset}; convert"
    ):
        decode_request(data, "standard input")
