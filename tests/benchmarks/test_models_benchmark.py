"""The benchmark of model costs counts the same parts on both sides."""

from benchmarks.models import Task, packetgate, plain
from benchmarks.ready import office_tools, reading_tool
from packetgate.tools.catalogue.catalogue import Catalogue

READ = Task("Read notes.txt", "files.read_text_file", {"path": "notes.txt"})
CATALOGUE = Catalogue([reading_tool(READ.tool), *office_tools()[:59]])


async def test_a_plain_read_takes_two_calls_and_fewer_prompt_tokens_than_plain_tool_calling() -> None:
    ours, theirs = [(await side(CATALOGUE, [READ, READ])).figures() for side in (packetgate, plain)]
    assert (ours["calls"], theirs["calls"]) == (2, 2)
    assert ours["prompt"] < theirs["prompt"]
    assert theirs["cached"] < theirs["prompt"], "the tools come first, and are the same in every request"
