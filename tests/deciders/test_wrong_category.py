"""Objections to a tool of another category than the request asks for."""

from pathlib import Path

import pytest
from support.data_folder import data_folder
from support.tool_specs import a_tool

from benchmarks.ranking.data import read_queries, read_tools
from packetgate.deciders.wrong_category import wrong_category
from packetgate.state.routing import Risk
from packetgate.tools.catalogue.catalogue import Catalogue

TOOLS = Catalogue(
    [
        a_tool("banner.figlet", "Create big ASCII art from a text or an image."),
        a_tool("studio.generate", "Create an image from a description.", risk=Risk.WRITE),
        a_tool("studio.describe_image", "Describe an image."),
        a_tool("mail.send_message", "Send a message.", risk=Risk.WRITE),
        a_tool("board.create_task", "Create a task.", risk=Risk.WRITE),
        a_tool("board.purge_tasks", "Purge the tasks.", risk=Risk.EXECUTE),
        a_tool("clock.set_alarm", "Set an alarm at a time.", risk=Risk.WRITE),
        a_tool("files.write", "Write a file.", risk=Risk.WRITE),
        a_tool("misc.frobnicate", "Frobnicate."),
    ]
)
FOX = "Create an image of a fox"
FIGLET = "banner.figlet"
MOST_OBJECTIONS = 0.01


def better(name: str, request: str, most: Risk = Risk.WRITE, catalogue: Catalogue = TOOLS) -> str | None:
    found = wrong_category(catalogue[name], request, most, catalogue)
    return found.better_tool if found else None


@pytest.mark.parametrize(
    ("name", "request_", "instead"),
    [
        (FIGLET, FOX, "studio.generate"),
        (FIGLET, "Please make me a picture: an image of a fox.", "studio.generate"),
        ("mail.send_message", FOX, "studio.generate"),
        ("studio.generate", "Create a task for Mary", "board.create_task"),
    ],
)
def test_a_tool_of_another_category_gets_an_objection(name: str, request_: str, instead: str):
    assert better(name, request_) == instead


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("studio.generate", FOX),
        (FIGLET, "Create ASCII art of a fox"),
        (FIGLET, "Create an image of a fox in ASCII"),
        (FIGLET, "Create an image of a fox with figlet"),
        (FIGLET, "Create a banner image that says fox"),
        (FIGLET, "Write FOX in big letters"),
        (FIGLET, "What do you think of the picture?"),
        ("mail.send_message", "Create an image of a fox and send it to Mary"),
        ("mail.send_message", "Create an image of a fox, then mail it"),
        ("mail.send_message", "Send Mary the image"),
        ("mail.send_message", "Tell Mary about the image"),
        ("clock.set_alarm", "Create a task for tomorrow at this time"),
        ("files.write", FOX),
        ("misc.frobnicate", FOX),
        (FIGLET, ""),
    ],
)
def test_suitable_tools_get_no_objection(name: str, request_: str):
    assert better(name, request_) is None


def test_the_better_tool_has_no_higher_risk():
    drawers = Catalogue([TOOLS[FIGLET], TOOLS["mail.send_message"], TOOLS["studio.generate"]])
    assert better(FIGLET, FOX, Risk.READ, drawers) is None
    assert better(FIGLET, FOX, Risk.WRITE, drawers) == "studio.generate"
    assert better("mail.send_message", FOX, Risk.READ, drawers) is None
    purging = Catalogue([TOOLS["board.purge_tasks"], TOOLS["mail.send_message"]])
    assert better("mail.send_message", "Purge the tasks", catalogue=purging) is None


@pytest.mark.parametrize("risk", [Risk.READ, Risk.WRITE])
@pytest.mark.parametrize(
    ("tool", "request_", "recommended"),
    [
        ("board.delete_task", "List my tasks", False),
        ("board.delete_task", "Delete a task", True),
        ("board.list_tasks", "Show my tasks", True),
        ("board.list_and_delete_tasks", "List my tasks", False),
        ("board.create_task", "Add a task", True),
        ("studio.describe_image", FOX, False),
    ],
)
def test_the_better_tool_does_the_requested_action(tool: str, request_: str, recommended: bool, risk: Risk):
    catalogue = Catalogue([TOOLS["mail.send_message"], a_tool(tool, "What is to be done with it.", risk=risk)])
    assert better("mail.send_message", request_, catalogue=catalogue) == (tool if recommended else None)


SETS = {
    "livemcpbench": ("tools.jsonl", "queries.jsonl"),
    "bfcl_v4": ("live_multiple.jsonl", "live_multiple.jsonl"),
    "metatool_toole": ("tools.jsonl", "test.jsonl"),
    "sealtools": ("tools.jsonl", "test_in_domain.jsonl"),
}


@pytest.mark.data_sets
@pytest.mark.parametrize("name", SETS)
def test_needed_tools_are_rarely_objected_to(name: str):
    folder = data_folder()
    assert folder is not None
    tools, queries = (folder / name / Path(file) for file in SETS[name])
    catalogue = Catalogue(read_tools([tools]).values())
    needed = [
        (query.text, tool)
        for query in read_queries([queries], catalogue)
        for group in query.wanted
        for tool in sorted(group)
    ]
    objections = sum(better(tool, text, Risk.EXECUTE, catalogue) is not None for text, tool in needed)
    assert objections <= MOST_OBJECTIONS * len(needed)
