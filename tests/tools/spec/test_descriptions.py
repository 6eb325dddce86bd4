import pytest

from packetgate.tools.spec.descriptions import BRIEF_WORDS, brief_of


@pytest.mark.parametrize(
    "tail",
    [
        "\n\nArgs:\n    path: the file",
        "\nArgs:\n    path: the file",
        " Args: path (the file)",
        "\n\nParameters:\n- path: the file",
        "\n\nParameters\n----------\npath : str\n    the file",
        "\n\n## Parameters\n\n- `path` the file",
        "\n\n**Arguments:**\n* path: the file",
        "\n\n:param path: the file\n:returns: text",
        "\n\n@param path the file",
        "\n\nReturns:\n    the text of path",
        "\n\nExamples:\n    read path",
        "\n\nINPUT: path",
    ],
)
@pytest.mark.parametrize("about", ["Read a file.", "Read a file", "Read a file. It is text.", "Read it!"])
def test_the_brief_ends_where_the_parameters_begin(about: str, tail: str):
    if tail.startswith(" ") and not about.endswith((".", "!")):
        about += "."
    assert brief_of(about + tail) == about


@pytest.mark.parametrize(
    "full",
    [
        "Returns the list of files below a folder.",
        "Input is checked before it is used. Arguments never reach a shell.",
        "Converts e.g. 3.5 miles to km. Works for U.S. units.",
        "Reads a file's text, see `path`.",
    ],
)
def test_sentences_about_the_tool_stay(full: str):
    assert brief_of(full) == full


def test_lines_are_joined():
    assert brief_of("  Read a\n   file.\n\n  It is\ttext.  ") == "Read a file. It is text."


def test_only_whole_sentences_up_to_the_limit():
    sentence = "One two three four five six seven eight nine ten. "
    brief = brief_of(sentence * 20 + "And more.")
    assert brief == (sentence * 10).strip()
    assert len(brief.split()) == BRIEF_WORDS == 100


def test_a_sentence_that_does_not_fit_ends_the_brief():
    assert brief_of("Short one. " + "Word " * 100 + "end. Short again.") == "Short one."


def test_a_single_endless_sentence_is_cut_at_the_limit():
    assert len(brief_of("word " * 5000).split()) == BRIEF_WORDS


def test_nothing_is_nothing():
    assert brief_of("") == ""
