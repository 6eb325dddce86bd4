"""The `ai` server: `read`, `write` and `execute`."""

import asyncio
from typing import Annotated

from pydantic import Field

from state.routing import Risk
from tools.builtin.executing import execute as run_command
from tools.builtin.reading import read_kept, read_text
from tools.builtin.root import Root
from tools.builtin.sandbox import Sandbox
from tools.builtin.tool import Answer, BuiltinTool
from tools.builtin.writing import WriteMode, write_text
from tools.text.kept import PREFIX, KeptResults

FilePath = Annotated[str, Field(description="The file, relative to the working folder, for example docs/plan.md.")]
DryRun = Annotated[bool, Field(description="Only tell what would happen and change nothing. False does it.")]


def ai_tools(root: Root, sandbox: Sandbox, kept: KeptResults | None = None) -> tuple[BuiltinTool, ...]:
    """Return the tools, confined to `root`; programs run in the sandbox; `kept` results can be read like files."""

    async def read(
        path: FilePath,
        first_line: Annotated[int, Field(ge=1, description="The first line to return, counted from 1.")] = 1,
        max_lines: Annotated[int, Field(ge=1, le=100_000, description="Most lines to return.")] = 2000,
    ) -> Answer:
        """Read one text file of the working folder.

        Returns its UTF-8 text as it is. When that is not the whole file, the last line says, in brackets, how many
        lines there are and how to read on. A path that a cut result names ("kept:...") is that result. Files above
        5 MB, binary files and files outside the folder are refused.
        """
        if kept and path.startswith(PREFIX):
            return Answer(await asyncio.to_thread(read_kept, kept, path, first_line, max_lines))
        return Answer(await asyncio.to_thread(read_text, root, path, first_line, max_lines))

    async def write(
        path: FilePath,
        content: Annotated[str, Field(description="The text to write, complete, with its newlines.")],
        mode: Annotated[
            WriteMode,
            Field(description="create: only a new file. overwrite: replace the whole file. append: add at its end."),
        ] = "create",
        dry_run: DryRun = True,
    ) -> Answer:
        """Write text to one file of the working folder.

        Creates missing folders on the way. A dry run answers "Would ..." with the difference to the present text and
        changes nothing; otherwise the answer says what was created, overwritten or appended to.
        """
        return Answer(await asyncio.to_thread(write_text, root, path, content, mode, dry_run=dry_run))

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

    return (
        BuiltinTool(read, Risk.READ, reads_on=True),
        BuiltinTool(write, Risk.WRITE, preview="ai.read"),
        BuiltinTool(execute, Risk.EXECUTE, open_world=True),
    )
