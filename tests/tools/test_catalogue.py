import pytest
from support.tool_specs import a_tool, files_catalogue

from tools.catalogue import Catalogue


def test_the_order_is_by_name_whatever_came_first():
    names = ["b.two", "a.zed", "b.one", "a.ten"]
    assert list(Catalogue([a_tool(name) for name in names])) == sorted(names)
    assert list(Catalogue([a_tool(name) for name in reversed(names)])) == sorted(names)
    assert list(Catalogue()) == []


@pytest.mark.parametrize(
    "name",
    [
        "files.read_file",
        "read_file",
        "readFile",
        "ReadFile",
        "read-file",
        "files_read_file",
        "files/read_file",
        "FILES.READ_FILE",
        "files__read_file",
    ],
)
def test_other_spellings_mean_the_one_tool(name: str):
    assert files_catalogue().canonical(name) == "files.read_file"


@pytest.mark.parametrize(
    "name", ["", "file", "read", "files", "files.read", "mail.read_file", "!!!", "読む", "read_me"]
)
def test_what_could_mean_something_else_means_nothing(name: str):
    assert files_catalogue().canonical(name) is None


def test_a_name_that_two_servers_offer_means_neither():
    catalogue = Catalogue([a_tool("a.read_file"), a_tool("b.read_file")])
    assert catalogue.canonical("read_file") is None
    assert catalogue.canonical("a_read_file") == "a.read_file"
    assert catalogue.canonical("b.read_file") == "b.read_file"


def test_a_name_in_other_letters_is_only_itself():
    catalogue = Catalogue([a_tool("s.読む")])
    assert catalogue.canonical("s.読む") == "s.読む"
    for name in ("!!!", "s", "", "書く", "s.書く"):
        assert catalogue.canonical(name) is None


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("files.reed_file", "files.read_file"),
        ("files.file_reading", "files.read_file"),
        ("run", "shell.run_command"),
        ("commands", "shell.run_command"),
        ("filesystem.write", "files.write_file"),
    ],
)
def test_the_nearest_comes_first(name: str, nearest: str):
    assert files_catalogue().nearest(name)[0] == nearest


def test_nearest_is_bounded_and_without_repeats():
    catalogue = Catalogue([a_tool(f"files.read_file_{i}") for i in range(50)])
    nearest = catalogue.nearest("files.read_file", limit=7)
    assert len(nearest) == len(set(nearest)) == 7
    assert nearest == catalogue.nearest("files.read_file", limit=7)
    assert files_catalogue().nearest("xyzzy") == ()
    assert Catalogue().nearest("read") == ()
