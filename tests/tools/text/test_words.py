from concurrent.futures import ThreadPoolExecutor

import pytest

from packetgate.tools.text.words import stem_of, words_in


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Read the file", ["read", "the", "file"]),
        ("readTextFile2", ["readtextfile2", "read", "text", "file", "2"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("read_text-file.now", ["read", "text", "file", "now"]),
        ("file file", ["file", "file"]),
        ("Café Größe ÎLE", ["cafe", "grosse", "ile"]),
        ("天気予報", ["天気予報", "天気", "気予", "予報"]),
        ("天気", ["天気"]),
        ("iPhone天気x", ["iphone", "i", "phone", "天気", "x"]),
        ("날씨를", ["날씨를", "날씨", "씨를"]),
        ("погода ПОГОДА", ["погода", "погода"]),
        ("🚪 _ - \x00", []),
    ],
)
def test_texts_are_split_into_words(text: str, words: list[str]):
    assert words_in(text) == words


def test_forms_of_a_word_share_a_stem():
    assert {stem_of(word) for word in ("search", "searches", "searching", "searched")} == {"search"}
    assert stem_of("seashore") != "search"


def test_threads_do_not_mix_up_stems():
    words = [f"{letter}{ending}" for letter in "abcdefgh" * 40 for ending in ("lockings", "lockers", "locked")]
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(stem_of.__wrapped__, words)] == [stem_of(word) for word in words]
