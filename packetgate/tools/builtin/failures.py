"""Why a built-in tool could not do what it was asked.

ToolFailure             what the model is told: the offending thing, and the way out
├── TooLargeError       a file above the size limit
└── NotTextError        a file that is not UTF-8 text

EmbeddingsError         embeddings that cannot be had; the search by words takes over
"""

from collections.abc import Iterator
from contextlib import contextmanager


class ToolFailure(Exception):  # noqa: N818 - named for what the model reads
    """A failure the model can act on: an answer, not a fault of the tool's."""


class TooLargeError(ToolFailure):
    """A file is above the size limit."""


class NotTextError(ToolFailure):
    """A file is not UTF-8 text."""


class EmbeddingsError(Exception):
    """The embeddings cannot be had: never told as a failure, because there is a search without them."""


@contextmanager
def os_failures(task: str) -> Iterator[None]:
    """Turn an `OSError` into a `ToolFailure` that says what was being done."""
    try:
        yield
    except OSError as error:
        raise ToolFailure(f"cannot {task}: {error.strerror or error}") from error
