"""The risk of tools by definition and annotations."""

from dataclasses import dataclass
from typing import Any

import pytest

from packetgate.state.routing import Risk
from packetgate.tools.risk.parameter_kinds import Definition
from packetgate.tools.risk.tool import judge_tool

R, W, X = Risk.READ, Risk.WRITE, Risk.EXECUTE
TEXT = {"type": "string"}


@dataclass(frozen=True)
class Hints:
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    open_world_hint: bool | None = None


READ_ONLY, SILENT, CHANGES, DESTROYS = Hints(True), Hints(), Hints(False), Hints(None, True)


def judged(name: str, description: str = "", hints: Hints | None = None, *, trusted: bool = False, **parameters: Any):
    return judge_tool(
        Definition(name, description, {"type": "object", "properties": parameters}), hints, trusted=trusted
    )


@pytest.mark.parametrize(
    ("name", "description", "parameters", "apparent_risk"),
    [
        ("read_file", "Read a file.", {"path": TEXT}, R),
        ("git_log", "Shows the commit logs.", {"repo": TEXT}, R),
        ("git_status", "Shows the state of the working tree.", {"repo": TEXT}, R),
        ("directory_tree", "Get a tree of a folder.", {"path": TEXT}, R),
        ("open_nodes", "Open nodes of the graph by name.", {"names": {"type": "array"}}, W),
        ("search_nodes", "Search for nodes.", {"query": TEXT}, R),
        ("list_directory", "List a directory.", {"path": TEXT}, R),
        ("get_current_time", "Get the time.", {"timezone": TEXT}, R),
        ("convert_time", "Convert a time to another zone.", {"time": TEXT}, W),
        ("fetch", "Fetches a page and returns its text.", {"url": TEXT}, R),
        ("listDeletedItems", "Lists what was deleted.", {}, R),
        ("browser_tabs", "List tabs.", {"action": {"enum": ["list", "close"]}}, W),
        ("git_pull", "Fetch and merge from the remote.", {}, W),
        ("check_webhook", "Check a webhook by calling it.", {"webhook": TEXT}, W),
        ("fetch_webhook", "Fetch the webhook to notify the team.", {"webhook": TEXT}, W),
        ("start_scan", "Start a security scan in the background.", {}, W),
        ("warehouse_query", "Query the warehouse.", {"query": TEXT}, W),
        ("delete_everything", "Deletes everything.", {}, W),
        ("send_mail", "Send a mail.", {"to": TEXT, "body": TEXT}, W),
        ("get_or_create_page", "Get a page, or create it.", {"title": TEXT}, W),
        ("search_and_replace", "Search and replace in a file.", {"path": TEXT}, W),
        ("browser_click", "Click an element.", {"ref": TEXT}, W),
        ("frobnicate", "", {}, W),
        ("run_command", "Run a command.", {"command": TEXT}, X),
        ("evaluate", "Evaluate JavaScript in the page.", {"script": TEXT}, X),
        ("cypher_query", "Run Cypher.", {"query": TEXT | {"description": "A Cypher query."}}, X),
    ],
)
def test_a_tool_that_looks_like_a_read_is_a_write(
    name: str, description: str, parameters: dict[str, Any], apparent_risk: Risk
):
    found = judged(name, description, **parameters)
    assert found.apparent_risk is apparent_risk
    assert found.risk is (W if apparent_risk is R else apparent_risk)
    assert found.is_unconfirmed_read is (apparent_risk is R)
    assert ("nothing confirms that it only reads" in found.reasons) is (apparent_risk is R)
    assert found.reasons


@pytest.mark.parametrize(
    ("name", "description", "why"),
    [
        ("", "Get a page.", "its name has no word in ASCII letters"),
        ("読む", "Read a file.", "its name has no word in ASCII letters"),
        ("g\u0435t_page", "Get a page.", "its name has letters that are not ASCII"),
        ("get_page", "G\u0435t a page.", "its description mixes alphabets within a word"),
        ("get_page", "ページの本文を読む。", "its description is not in English"),
        ("get_page", "Alle Seiten werden dabei sofort entfernt", "its description is not in English"),
    ],
)
def test_a_tool_whose_text_is_not_understood_is_a_write(name: str, description: str, why: str):
    for hints, trusted in ((None, False), (READ_ONLY, False)):
        found = judged(name, description, hints, trusted=trusted)
        assert found.apparent_risk is found.risk is W
        assert why in found.reasons[:2]


def test_a_huge_definition_is_judged_quickly():
    parameters = {f"p{i}": TEXT | {"description": "x " * 500} for i in range(600)}
    assert judged("delete_page", "Delete a page. " + "Get it. " * 200_000, **parameters).risk is W


@pytest.mark.parametrize(
    ("name", "hints", "untrusted", "trusted"),
    [
        ("get_page", READ_ONLY, W, R),
        ("get_page", None, W, W),
        ("get_page", SILENT, W, W),
        ("get_page", CHANGES, W, W),
        ("get_page", DESTROYS, W, W),
        ("delete_everything", READ_ONLY, W, R),
        ("frobnicate", READ_ONLY, W, R),
        ("send_message", READ_ONLY, W, W),
        ("execute_script", READ_ONLY, X, X),
        ("execute_script", CHANGES, X, X),
    ],
)
def test_hints_lower_the_risk_only_if_trusted(name: str, hints: Hints | None, untrusted: Risk, trusted: Risk):
    description = f"{name.replace('_', ' ').capitalize()}."
    assert judged(name, description, hints).risk is untrusted
    assert judged(name, description, hints, trusted=True).risk is trusted


@pytest.mark.parametrize("parameter", ["sql", "command", "code"])
def test_a_trusted_hint_does_not_make_an_executing_tool_a_read(parameter: str):
    assert judged("go", "Do it.", READ_ONLY, trusted=True, **{parameter: TEXT}).risk is X


def test_reasons_quote_the_definition():
    assert "its name says `delete`" in judged("delete_page", "Remove a page.").reasons
    assert judged("read_query", "Query the database.", sql=TEXT).reasons == (
        "nothing confirms that it only reads",
        "its parameter `sql` holds SQL",
    )
    assert judged("get_page", "Get a page.", DESTROYS).reasons[0] == "its server says that it is destructive"
    assert judged("get_page", "Get a page.", CHANGES).reasons == ("its server says that it does more than read",)
    assert judged("get_page", "Get a page.", READ_ONLY).reasons == (
        "its server, which is not trusted, says that it only reads",
    )
    assert judged("go", "Go.", READ_ONLY, trusted=True).reasons == (
        "its server, which is trusted, says that it only reads",
    )


@pytest.mark.parametrize(
    ("name", "parameters", "hints", "trusted", "outside"),
    [
        ("fetch", {"url": TEXT}, None, False, True),
        ("read_file", {"path": TEXT}, None, False, False),
        ("read_file", {"path": TEXT}, Hints(True, open_world_hint=True), False, True),
        ("fetch", {"url": TEXT}, Hints(True, open_world_hint=False), False, True),
        ("fetch", {"url": TEXT}, Hints(True, open_world_hint=False), True, False),
        ("web_search", {"query": TEXT}, None, False, True),
    ],
)
def test_whether_a_tool_reaches_outside(
    name: str, parameters: dict[str, Any], hints: Hints | None, trusted: bool, outside: bool
):
    assert judged(name, "", hints, trusted=trusted, **parameters).reaches_outside is outside
