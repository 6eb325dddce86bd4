"""Without a model, `reflex` makes a call only if the call accounts for the whole request."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.packets import CONTEXT, packet

from packetgate.deciders.protocols import Selection
from packetgate.graph.servers import make_hub
from packetgate.graph.settings import Settings
from packetgate.reflex.deciding import words_left_out
from packetgate.reflex.fit import best_fits
from packetgate.reflex.plugin import select_by_reflex
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.toolsets.servers.config import McpConfig


@pytest.fixture
async def builtin(tmp_path: Path) -> AsyncIterator[Catalogue]:
    root = tmp_path / "root"
    for path in ("garden.md", "tools.txt", "logs/pump.log", "app.ini"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("rake\nhose\n")
    async with await make_hub(Settings(home=tmp_path / "home", root=root), McpConfig()) as hub:
        yield await hub.catalogue()


async def selection_for(request: str, catalogue: Catalogue) -> Selection:
    return await select_by_reflex(packet(request, catalogue=catalogue), catalogue, CONTEXT)


@pytest.mark.parametrize(
    ("request_", "left_out"),
    [
        ("delete the word rake from tools.txt", ["delete", "rake"]),
        ("delete tools.txt", []),
        ("please delete the file tools.txt for me", []),
        ("show me the garden notes", []),
        ("hello, show me garden.md", []),
        ("show me the last 3 lines of logs/pump.log", []),
        ("compare garden.md with tools.txt", ["compare"]),
        ("what is the colour of the hose in garden.md?", []),
        ("how many roses are in garden.md?", ["roses"]),
    ],
)
async def test_words_that_a_call_leaves_out(request_: str, left_out: list[str], builtin: Catalogue) -> None:
    now = packet(request_).header.created_at.astimezone()
    best = best_fits(request_, builtin, now)[0]
    assert words_left_out(request_, best.spec, best.fillings) == left_out


@pytest.mark.parametrize(
    ("request_", "tool", "says"),
    [
        ("delete the word rake from tools.txt", "", 'leaves out "delete", "rake"'),
        ("replace everything in tools.txt with 'empty'", "", "uncertain arguments"),
        ("change the port in app.ini to 90", "", "uncertain arguments: `old_text`, `new_text`"),
        ("line 5 of garden.md", "", "uncertain arguments"),
        ("run the unit tests", "", "uncertain arguments: `argv`"),
        ("stage garden.md", "", '"stage"'),
        ("delete the old one", "", "finds no such file"),
        ("delete old.txt", "ai.delete", ""),
        ("make a folder called archive", "ai.make_folder", ""),
        ("make a folder called 'compost bins'", "ai.make_folder", ""),
        ("make a folder for it", "", "needs a value for path"),
        ("append 'twine' to tools.txt and then stage garden.md", "", '"stage"'),
        ("append 'twine' to tools.txt and then read it", "ai.append", ""),
        ("make a file sign.txt with the text: back at 3, don't knock: it is open", "", "says what not to do"),
        ("supprime le fichier garden.md", "", "leaves out"),
        ("empty tools.txt", "", 'leaves out "empty"'),
        ("make a new file sign.txt that says 'back at 3'", "ai.write", ""),
        ("back up tools.txt", "", 'leaves out "back"'),
        ("delete tools.txt", "ai.delete", ""),
        ("append 'twine' to tools.txt", "ai.append", ""),
        ("which files mention the hose?", "ai.search", ""),
        ("replace 'rake' with 'hoe' in tools.txt", "ai.edit", ""),
    ],
)
async def test_a_call_is_made_only_for_the_whole_request(
    request_: str, tool: str, says: str, builtin: Catalogue
) -> None:
    selection = await selection_for(request_, builtin)
    assert [call.tool_name for call in selection.calls] == [tool] * bool(tool)
    assert says in selection.reasoning


@pytest.mark.parametrize(
    ("request_", "offered"),
    [
        ("compare garden.md with tools.txt", [("ai.read", {"path": "garden.md"}), ("ai.read", {"path": "tools.txt"})]),
        (
            "change the port in app.ini to 90",
            [("ai.edit", {"path": "app.ini", "old_text": "port", "new_text": "90"})],
        ),
        ("delete tools.txt, the hose leaks", [("ai.delete", {"path": "tools.txt"})]),
        (
            "the hose leaks: append 'buy twine' to tools.txt",
            [("ai.append", {"path": "tools.txt", "text": "buy twine"})],
        ),
        ("delete the word rake from tools.txt", []),
        ("delete everything except garden.md", []),
    ],
)
async def test_the_nearest_calls_are_offered_instead(
    request_: str, offered: list[tuple[str, dict[str, str]]], builtin: Catalogue
) -> None:
    selection = await selection_for(request_, builtin)
    assert [(one.tool_name, one.params) for one in selection.alternatives] == offered
