"""The `ai` server: the files of the working folder, and programs."""

import asyncio
from datetime import date
from typing import Annotated

from pydantic import Field

from packetgate.state.routing import Risk
from packetgate.tools.builtin.changes import changing_tools
from packetgate.tools.builtin.corpus import Corpus
from packetgate.tools.builtin.counting import count as count_in
from packetgate.tools.builtin.executing import execute as run_command
from packetgate.tools.builtin.lexical import LexicalIndex
from packetgate.tools.builtin.listing import Limits, Order, View, find_files, list_folder
from packetgate.tools.builtin.parameters import DryRun, ExistingFile, FileOrFolder, Folder, WhichFiles
from packetgate.tools.builtin.paths import PathReader
from packetgate.tools.builtin.reading import Lines, read_kept, read_text
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.sandbox import Sandbox
from packetgate.tools.builtin.searching import Searcher
from packetgate.tools.builtin.tool import Answer, BuiltinTool
from packetgate.tools.text.kept import PREFIX, KeptResults

Sorted = Annotated[Order, Field(description="What comes first: by name, the largest, smallest, newest or oldest.")]
MaxResults = Annotated[int, Field(ge=1, le=1_000, description="Most results to return, for example 3 for the top 3.")]
Hidden = Annotated[bool, Field(description="Also show hidden files, whose names begin with a dot.")]
MatchCase = Annotated[bool, Field(description="Whether capital and small letters must be the same.")]


def ai_tools(
    root: Root, sandbox: Sandbox, kept: KeptResults | None, corpus: Corpus, by_words: LexicalIndex
) -> tuple[BuiltinTool, ...]:
    """Return the tools, confined to `root`; programs run in the sandbox; `kept` results can be read like files."""
    return (
        *_reading_tools(root, kept),
        *_finding_tools(root),
        *_searching_tools(root, Searcher(root, corpus, by_words)),
        *changing_tools(root),
        *_running_tools(root, sandbox),
    )


def _reading_tools(root: Root, kept: KeptResults | None) -> tuple[BuiltinTool, ...]:
    async def read(
        path: ExistingFile,
        *,
        first_line: Annotated[int, Field(ge=1, description="The line to start at, as 10 in 'lines 10 to 20'.")] = 1,
        last_line: Annotated[
            int, Field(ge=0, description="The line to stop at, as 20 in 'lines 10 to 20'. 0: the end of the file.")
        ] = 0,
        head: Annotated[
            int, Field(ge=0, description="How many lines from the beginning, as 5 in 'the first 5 lines'. 0: all.")
        ] = 0,
        tail: Annotated[
            int, Field(ge=0, description="How many lines from the end, as 20 in 'the last 20 lines'. 0: all.")
        ] = 0,
        max_lines: Annotated[int, Field(ge=1, le=100_000, description="Most lines to return at once.")] = 2000,
    ) -> Answer:
        """Read a text file: show, open or print what it says, all of it, some lines, or the first or last lines.

        Returns: its UTF-8 text as it is. When that is not the whole file, the last line says, in brackets, how many
        lines there are and how to read on. A path that a cut result names ("kept:...") is that result. Files above
        5 MB, binary files and files outside the working folder are refused.
        """
        wanted = Lines(first_line, last_line, head, tail, max_lines)
        if kept and path.startswith(PREFIX):
            return Answer(await asyncio.to_thread(read_kept, kept, path, wanted))
        return Answer(await asyncio.to_thread(read_text, root, path, wanted))

    return (BuiltinTool(read, Risk.READ, reads_on=True, paths=(PathReader(root, kind="file"),)),)


def _finding_tools(root: Root) -> tuple[BuiltinTool, ...]:
    async def list_(
        path: Folder = ".",
        pattern: WhichFiles = "*",
        *,
        sort: Sorted = "name",
        recursive: Annotated[bool, Field(description="Also what lies in the folders below.")] = False,
        hidden: Hidden = False,
        max_results: MaxResults = 200,
    ) -> Answer:
        """List the files and folders in a folder, with size and date: what is there, as in a directory listing.

        Returns: each with its size and when it was last changed; of one file just that. Files that may hold keys or
        secrets are counted, and not named, unless the call names them.
        """
        view = View(sort, max_results, hidden)
        return await asyncio.to_thread(list_folder, root, path, pattern, view, deep=recursive)

    async def find(
        name: Annotated[
            str,
            Field(
                min_length=1,
                max_length=300,
                description="The name, a part of it, or a pattern such as *.csv. Left out: any name.",
            ),
        ] = "*",
        path: Folder = ".",
        *,
        larger_than: Annotated[int, Field(ge=0, description="Only files of more bytes, as 1000000 for 1 MB.")] = 0,
        smaller_than: Annotated[int, Field(ge=0, description="Only files of fewer bytes. 0: any size.")] = 0,
        changed_after: Annotated[
            date | None, Field(description="Only files changed on this day or later, as 2026-01-31.")
        ] = None,
        changed_before: Annotated[
            date | None, Field(description="Only files changed before this day, as 2026-01-31.")
        ] = None,
        changed_within_days: Annotated[
            int, Field(ge=0, le=36_500, description="Only files changed in so many days: 1 is today, 7 this week.")
        ] = 0,
        sort: Sorted = "name",
        hidden: Hidden = False,
        max_results: MaxResults = 200,
    ) -> Answer:
        """Find files and folders by name, type, size or date: where is a file, which are largest, newest, oldest.

        Returns: each path, from all folders below, with its size and the date when it was last changed. A name that
        is nearly right is found as well.
        """
        limits = Limits(larger_than, smaller_than, changed_after, changed_before, changed_within_days)
        return await asyncio.to_thread(find_files, root, name, path, limits, View(sort, max_results, hidden))

    return (
        BuiltinTool(list_, Risk.READ, named="list", paths=(PathReader(root, kind="any"),)),
        BuiltinTool(find, Risk.READ, paths=(PathReader(root, kind="folder"),), takes_kind="name"),
    )


def _searching_tools(root: Root, searcher: Searcher) -> tuple[BuiltinTool, ...]:
    async def search(
        query: Annotated[
            str, Field(min_length=1, max_length=2_000, description="The word or text that the files should contain.")
        ],
        path: FileOrFolder = ".",
        pattern: WhichFiles = "*",
        match_case: MatchCase = False,
        max_results: MaxResults = 50,
    ) -> Answer:
        """Search inside files for a word or exact text, like grep: which files contain or mention it, on which line.

        Returns: each place with path, line number and line; where there is only one, the passage around it. Where the
        text stands nowhere as it is given, the passages nearest by their words. Hidden and built files are not
        searched.
        """
        return await asyncio.to_thread(searcher.search, query, path, pattern, max_results, match_case=match_case)

    async def count(
        path: FileOrFolder = ".",
        pattern: WhichFiles = "*",
        text: Annotated[
            str, Field(max_length=2_000, description="A word or text: how often does it occur? Left out: not counted.")
        ] = "",
        match_case: MatchCase = False,
    ) -> Answer:
        """Count lines, words, characters and files, or how often a text occurs: how many, how long, how big.

        Returns: of a file the counts of what is in it, of a folder those of the files and all that is in them.
        """
        return await asyncio.to_thread(count_in, root, path, pattern, text, match_case=match_case)

    readers = (PathReader(root, kind="any"),)
    return (BuiltinTool(search, Risk.READ, paths=readers), BuiltinTool(count, Risk.READ, paths=readers))


def _running_tools(root: Root, sandbox: Sandbox) -> tuple[BuiltinTool, ...]:
    async def execute(
        argv: Annotated[
            list[str],
            Field(min_length=1, description='The program and its arguments, for example ["git", "status"]. No shell.'),
        ],
        timeout_s: Annotated[float, Field(ge=0.1, le=600, description="Seconds until it is stopped.")] = 30,
        dry_run: DryRun = True,
    ) -> Answer:
        """Run one program, starting in the working folder.

        It gets no shell (so no pipes, wildcards or variables), no input, and of the environment only PATH, HOME, LANG,
        TERM and TMPDIR. Where the system offers a sandbox, it can change nothing outside the working folder and has no
        network; a dry run says which one there is. Without one, files and network are open to it as to the user.
        Returns its exit status and output; a status other than 0, or the time-out, is an error that carries the
        output. When it ends, whatever it started in the background ends with it. A dry run only says what would run.
        """
        return Answer(await run_command(root, sandbox, argv, timeout_s, dry_run=dry_run))

    return (BuiltinTool(execute, Risk.EXECUTE, open_world=True),)
