"""The answer names the files that tools return; their bytes are only in a private file."""

import stat
from pathlib import Path

import pytest
from support.command_line import CommandLine, Outcome
from support.media_server import BLOB, PNG, SCRIPT, encoded
from support.plain_server import configure, entry


@pytest.fixture
def media(cli: CommandLine) -> CommandLine:
    configure(cli.folder / "mcp.json", builtin=True, media=entry(SCRIPT))
    return cli


def ask(media: CommandLine, tool: str, *options: str) -> Outcome:
    words = f"Get the {tool.removeprefix('get_')} with media.{tool}"
    return media.run("ask", "--session", "s", *options, words)


def kept(media: CommandLine) -> list[Path]:
    return [file for file in (media.home / "kept").rglob("*") if file.is_file()]


def test_a_returned_picture_is_stored_in_a_private_file(media: CommandLine) -> None:
    done = ask(media, "get_picture")
    (file,) = kept(media)
    assert f"[image image/png, 12 kB: {file}]" in done.out
    assert f"[image image/png, 12 kB, kept:{file.name}]" in done.out
    assert file.read_bytes() == PNG
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (done.status, done.err) == (0, "")


def test_bytes_are_in_no_database_log_or_output(media: CommandLine) -> None:
    tools = {"get_picture": PNG, "get_blob": BLOB}
    outputs = [ask(media, tool, "--json").out for tool in tools]
    outputs.append(media.run("trace", "last").out)
    assert sorted(file.read_bytes() for file in kept(media)) == sorted(tools.values())
    everywhere = [text.encode() for text in outputs]
    everywhere += [file.read_bytes() for file in media.home.rglob("*") if file.is_file() and "kept" not in file.parts]
    assert any(b"SQLite format" in data and b"drawn" in data for data in everywhere)
    for data in tools.values():
        for piece in (encoded(data)[40:80], encoded(data[60:])[:40]):
            assert not [found for found in everywhere if piece.encode() in found]
        assert not [found for found in everywhere if data[60:90] in found]


def test_a_file_that_is_too_large_is_named_and_not_stored(media: CommandLine) -> None:
    done = ask(media, "get_poster")
    assert "[image image/png, 12.0 MB: not stored here]" in done.out
    assert kept(media) == []
