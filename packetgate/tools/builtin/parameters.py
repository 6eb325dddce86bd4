"""Parameters that several of the built-in tools take, each described once."""

from typing import Annotated

from pydantic import Field

ExistingFile = Annotated[
    str, Field(description="The file: its path in the working folder, as notes.txt, or only its name.")
]
FilePath = Annotated[str, Field(description="The file, relative to the working folder, for example notes.txt.")]
Folder = Annotated[str, Field(description="The folder to look in, for example docs. Left out: the working folder.")]
FileOrFolder = Annotated[
    str, Field(description="The file or folder, for example notes.txt or docs. Left out: the whole working folder.")
]
Source = Annotated[str, Field(description="The file or folder as it is called now, for example drafts/plan.md.")]
WhichFiles = Annotated[
    str,
    Field(
        min_length=1,
        max_length=300,
        description="Only files of such names: *.md for Markdown files, *.{jpg,png}, or a part of a name.",
    ),
]
DryRun = Annotated[bool, Field(description="Only tell what would happen and change nothing. False does it.")]
