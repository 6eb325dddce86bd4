"""The tools of the `ai` server."""

from packetgate.tools.builtin.corpus import Corpus, LexicalIndex
from packetgate.tools.builtin.executing import executing_tools
from packetgate.tools.builtin.files import Root
from packetgate.tools.builtin.listing import listing_tools
from packetgate.tools.builtin.moving import moving_tools
from packetgate.tools.builtin.reading import reading_tools
from packetgate.tools.builtin.sandbox import Sandbox
from packetgate.tools.builtin.searching import searching_tools
from packetgate.tools.builtin.tool import BuiltinTool
from packetgate.tools.builtin.writing import writing_tools
from packetgate.tools.text.result_store import ResultStore


def ai_tools(
    root: Root, sandbox: Sandbox, kept: ResultStore | None, corpus: Corpus, by_words: LexicalIndex
) -> tuple[BuiltinTool, ...]:
    """Return the tools. They reach only files below `root` and `kept` results; programs run in the sandbox."""
    return (
        *reading_tools(root, kept),
        *listing_tools(root),
        *searching_tools(root, corpus, by_words),
        *writing_tools(root),
        *moving_tools(root),
        *executing_tools(root, sandbox),
    )
