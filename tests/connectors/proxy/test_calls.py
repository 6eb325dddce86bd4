"""Calls through the proxy: each goes by the chain, however it came."""

from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from support.proxied_servers import proxied, rules
from support.proxies import Era, Make, talking

from packetgate.tools.servers.connection import Connection
from packetgate.tools.spec.standing import Ground


async def test_a_read_runs_though_it_was_never_listed(url: str, make: Make, era: Era, written: list[str]) -> None:
    written.append("one")
    async with talking(url, make, era) as talk:
        said = await talk.call("call_read_tool", name="ledger.list_entries")
        assert not said.is_error
        assert said.structured["status"] == "executed"
        assert "one" in said.text


async def test_an_unrelated_context_costs_two_calls_and_not_the_task(
    url: str, make: Make, era: Era, written: list[str]
) -> None:
    written.append("one")
    async with talking(url, make, era) as talk:
        context = (await talk.call("set_context", query="turn lamp number 7 of the greenhouse")).structured[
            "context_id"
        ]
        more = {"context_id": context} if context else {}
        found = await talk.call("search_tools", query="list the entries of the ledger", **more)
        best = found.structured["tools"][0]["name"]
        said = await talk.call("call_read_tool", name=best, **more)
        assert not said.is_error
        assert "one" in said.text


async def test_a_listed_tool_is_called_by_its_own_name(url: str, make: Make, written: list[str]) -> None:
    written.append("one")
    async with talking(url, make, "legacy") as talk:
        await talk.call("set_context", query="list the entries of the ledger")
        said = await talk.call("ledger.list_entries")
        assert not said.is_error
        assert "one" in said.text


async def test_what_was_never_shown_is_not_called_by_its_own_name(url: str, make: Make, era: Era) -> None:
    async with talking(url, make, era) as talk:
        said = await talk.call("ledger.list_entries")
        assert said.is_error
        assert "call_read_tool" in said.text


async def test_a_write_that_is_switched_off_is_not_run_and_says_how_to_allow_it(
    url: str, make: Make, era: Era, written: list[str]
) -> None:
    async with talking(url, make, era, answer=lambda *_: "yes") as talk:
        said = await talk.call("call_changing_tool", name="ledger.add_entry", arguments={"text": "x"})
        assert said.is_error
        assert said.structured["status"] == "skipped"
        assert "was NOT run" in said.text
        assert "--allow-writes" in said.text
        assert talk.asked == []
        assert written == []


async def test_a_write_does_not_come_in_by_the_way_of_reads(url: str, make: Make, era: Era, written: list[str]) -> None:
    async with talking(url, make, era) as talk:
        said = await talk.call("call_read_tool", name="ledger.add_entry", arguments={"text": "x"})
        assert said.is_error
        assert "call_changing_tool" in said.text
        assert written == []


async def test_a_slip_is_mended_and_told(url: str, make: Make, era: Era) -> None:
    async with talking(url, make, era) as talk:
        arguments = {"colour": "red", "hour": "7", "day": "today"}
        said = await talk.call("call_changing_tool", name="ledger_lamp_3", arguments=arguments)
        assert said.structured["tool"] == "ledger.lamp_3"
        assert any("`hour`" in one for one in said.structured["corrections"])


async def test_arguments_that_are_not_valid_are_named(url: str, make: Make, era: Era) -> None:
    async with talking(url, make, era) as talk:
        said = await talk.call("call_changing_tool", name="ledger.add_entry", arguments={"words": 3})
        assert said.is_error
        assert "text" in said.text


async def test_a_tool_that_is_not_there_is_told_with_the_nearest(url: str, make: Make, era: Era) -> None:
    async with talking(url, make, era) as talk:
        said = await talk.call("call_read_tool", name="ledger.list_entrys_now")
        assert said.is_error
        assert "ledger__list_entries" in said.text


async def test_descriptions_are_by_name_server_and_all(url: str, make: Make, era: Era) -> None:
    async with talking(url, make, era) as talk:
        one = await talk.call("fetch_tool_description", names=["ledger__add_entry", "nothing.like_it"])
        assert [tool["name"] for tool in one.structured["tools"]] == ["ledger__add_entry"]
        assert one.structured["tools"][0]["input_schema"]["required"] == ["text"]
        assert "nothing.like_it" in one.structured["unknown"]
        of_all = await talk.call("fetch_tool_description", names=["*"])
        assert (len(of_all.structured["tools"]), of_all.structured["left_out"]) == (50, 13)


async def test_a_context_of_nobody_is_refused(url: str, make: Make, era: Era) -> None:
    async with talking(url, make, era) as talk:
        said = await talk.call("search_tools", query="list", context_id="ctx_guessed")
        assert said.is_error
        assert "set_context" in said.text


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "clean"),
        ({"repo_path": "{shop}"}, "clean"),
        ({"repo_path": "{shop}/../shop/"}, "clean"),
        ({"repo_path": "{shop}/.."}, "leave it out"),
        ({"repo_path": 3}, "leave it out"),
    ],
)
async def test_an_argument_that_the_configuration_gives_may_be_given_as_well(
    tmp_path: Path, given: dict[str, Any], told: str
) -> None:
    (tmp_path / "shop").mkdir()
    shop = str((tmp_path / "shop").resolve())
    server = FastMCP("git")

    @server.tool(annotations={"readOnlyHint": True})
    def git_status(repo_path: str) -> str:
        """Show the status of the working tree."""
        return f"{repo_path} is clean"

    ground = Ground(shop, told=True)
    git = Connection("git", lambda: FastMCPTransport(server), trusted=True, ground=lambda: ground)
    arguments = {name: value.format(shop=shop) if isinstance(value, str) else value for name, value in given.items()}
    async with (
        proxied(tmp_path / "home", git, preferences=rules("allow", "git.*")) as (_, url),
        talking(url, "sdk", "legacy") as talk,
    ):
        said = await talk.call("git__git_status", **arguments)
    assert told in said.text
    assert said.is_error is (told != "clean")
    assert shop in said.text
