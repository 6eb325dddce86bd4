import pytest

from tools.text.stems import Stemmer
from tools.text.words import words_in


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
def test_words(text: str, words: list[str]):
    assert words_in(text) == words


def test_forms_of_a_word_share_a_stem():
    stems = Stemmer().stems(["search", "searches", "searching", "searched", "seashore"])
    assert len(set(stems.values())) == 2
    assert stems["searching"] == stems["search"] != stems["seashore"]


def test_each_word_has_a_stem_whatever_was_asked_before():
    stemmer = Stemmer()
    assert stemmer.stems(["notes", "天気", "été", "42"]) == {"notes": "note", "天気": "天気", "été": "été", "42": "42"}
    assert stemmer.stems(["42", "commits"]) == {"42": "42", "commits": "commit"}
    assert stemmer.stems([]) == {}
