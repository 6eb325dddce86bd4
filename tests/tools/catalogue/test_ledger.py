"""The capabilities ledger is short and stable, and counts every tool."""

import pytest
from support.data_folder import read_rows
from support.tool_specs import a_tool, files_catalogue

from benchmarks.tokens.counting import count
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.ledger import MAX_TOKENS, capabilities_ledger, primary_tools
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.tokens import estimated_tokens

KINDS = ("image", "weather", "task", "invoice", "song", "hotel", "chart", "file", "video", "mail", "oddity")

LONG = 350
"""Tokens of a ledger with more than the default."""


def many(tools: int, servers: int) -> list[ToolSpec]:
    """Return tools of many kinds, spread over servers."""
    return [a_tool(f"server_{i % servers:04}.get_{KINDS[i % len(KINDS)]}_{i}") for i in range(tools)]


def test_a_line_for_each_server_with_counts_categories_and_primary_tools():
    notes = [a_tool(f"notes.{verb}_note") for verb in ("list", "read", "find", "tag", "link", "move")]
    ledger = Catalogue([*files_catalogue().values(), *notes, a_tool("odd.frobnicate")]).ledger
    assert ledger.splitlines() == [
        "- files (2 tools): files 2; read_file, write_file",
        "- notes (6 tools): memory 6; tag_note, find_note, link_note, list_note, move_note, ...",
        "- odd (1 tool); frobnicate",
        "- shell (1 tool): commands 1; run_command",
    ]


def test_permanent_tools_are_named_first():
    notes = [a_tool(f"notes.read_{i:02}") for i in range(20)]
    assert "read_17" not in Catalogue(notes).ledger
    permanent = Catalogue(notes, preferences=Preferences(permanent=["notes.read_17"])).ledger
    assert permanent == Catalogue(notes).ledger.replace("read_00", "read_17, read_00").replace(", read_04", "")


def test_categories_take_turns_among_the_primary_tools():
    tools = ["s.get_task_a", "s.get_task", "s.find_task", "s.get_song", "s.get_image_of", "s.do_it"]
    assert primary_tools([a_tool(name) for name in tools], ()) == [
        "s.get_task",
        "s.do_it",
        "s.get_image_of",
        "s.get_song",
        "s.find_task",
        "s.get_task_a",
    ]


@pytest.mark.parametrize(("tools", "servers"), [(5, 1), (50, 5), (500, 60), (500, 600), (2_000, 600)])
def test_the_ledger_is_short_and_complete(tools: int, servers: int):
    specs = Catalogue(many(tools, servers)).servers
    for most in (MAX_TOKENS, LONG):
        ledger = capabilities_ledger(specs, max_tokens=most)
        assert 0 < estimated_tokens(ledger) <= most
        counts = [int(line.split(" tool")[0].split()[-1].lstrip("(").replace(",", "")) for line in ledger.splitlines()]
        assert sum(counts) == tools


def test_a_larger_catalogue_has_fewer_names_then_fewer_categories_then_a_line_for_each_category():
    small, more, many_servers, crowd = (
        capabilities_ledger(Catalogue(many(n * 11, n)).servers, max_tokens=LONG) for n in (4, 8, 14, 400)
    )
    assert small.splitlines()[0] == (
        "- server_0000 (11 tools): charts 1, files 1, travel 1, images 1, other 7;"
        " get_chart_28, get_file_40, get_hotel_16, get_image_0, get_invoice_36, ..."
    )
    assert 8 <= more.count("get_") < 40
    assert more.count("images 1") == 8
    assert many_servers.count("get_") == many_servers.count("images 1") == 0
    assert many_servers.count("charts 1, files 1") == len(many_servers.splitlines()) == 14
    assert len(crowd.splitlines()) == len(KINDS)
    assert crowd.splitlines()[0] == "- audio (400 tools): server_0000, server_0001, ..."
    assert crowd.splitlines()[-1].startswith("- other (400 tools): server_0000, ")


@pytest.mark.data_sets
def test_the_ledger_of_real_servers_has_at_most_400_tokens():
    rows = list(read_rows("livemcpbench", "tools.jsonl"))
    catalogue = Catalogue(a_tool(f"{row['server']}.{row['name']}", row["description"]) for row in rows)
    longer = capabilities_ledger(catalogue.servers, max_tokens=LONG)
    assert 0 < count(catalogue.ledger) < count(longer) < 400
    assert "server" in longer
