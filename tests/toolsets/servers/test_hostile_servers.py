"""Hostile servers that lie, print noise, flood and die, as processes over real pipes."""

import logging
import stat
from pathlib import Path

import pytest
from support.confirmed_reads import confirming_preferences
from support.hostile_server import SECRET, UNFIT, entry
from support.mcp_servers import until

from packetgate.state.errors import ServerError
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import MAX_PROBLEM
from packetgate.toolsets.servers.definitions import MAX_DESCRIPTION
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import new_connection
from packetgate.toolsets.servers.results import MAX_ANSWER_PARTS
from packetgate.toolsets.servers.stdio import MAX_LOG_BYTES


def hub_of(folder: Path, *behaviours: str, patience_s: float = 60.0, **more: object) -> McpHub:
    configs = [ServerConfig(name, entry(name, **more)) for name in behaviours]
    return McpHub([new_connection(config, folder / "logs") for config in configs], patience_s=patience_s)


async def test_unusable_tools_are_left_out_and_named(tmp_path: Path):
    async with hub_of(tmp_path, "unfit") as hub:
        assert list(await hub.catalogue()) == ["unfit.get_time"]
        (health,) = hub.health()
        assert (health.state, health.tools) == ("ready", 1)
        assert "get_\\x1b[2Jnews" in health.problem
        assert health.problem.endswith(f", and {len(UNFIT) + 1 - 3} more")
        assert health.problem.isprintable()
        assert (await hub.call("unfit.get_time", {})).output == "ran"


async def test_a_description_is_cleaned_and_cut(tmp_path: Path):
    async with hub_of(tmp_path, "wordy") as hub:
        wordy = (await hub.catalogue())["wordy.get_wordy"]
        assert wordy.full.startswith("Get [31mwords.\nword word")
        assert MAX_DESCRIPTION - 100 < len(wordy.full) <= MAX_DESCRIPTION
        assert hub.health()[0].problem == ""


@pytest.mark.slow
async def test_an_answer_of_many_parts_is_cut(tmp_path: Path):
    async with hub_of(tmp_path, "many") as hub:
        await hub.catalogue()
        result = await hub.call("many.get_many", {})
    assert (result.success, result.truncated) == (True, True)
    assert result.output.splitlines()[-2:] == [
        f"part {MAX_ANSWER_PARTS - 1}",
        f"[cut here: {300_000 - MAX_ANSWER_PARTS:,} more parts]",
    ]


async def test_stray_output_goes_only_to_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    async with hub_of(tmp_path, "babbling") as hub:
        await hub.catalogue()
        assert (await hub.call("babbling.get_time", {})).output == "ran"
        assert hub.health()[0].problem == ""
        log = tmp_path / "logs" / "babbling.log"
        # the two outputs arrive separately, at different times
        await until(lambda: log.read_text().count(f"key {SECRET}\n") >= 2 * log.read_text().count("error key") > 0)
    kept = log.read_text()
    assert "Welcome! {\n" in kept
    assert not caplog.records
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


async def test_output_of_a_dead_server_stays_in_its_log(tmp_path: Path):
    async with hub_of(tmp_path, "dying") as hub:
        assert list(await hub.catalogue()) == []
        problem = hub.health()[0].problem
    log = tmp_path / "logs" / "dying.log"
    assert "logs/dying.log" in problem
    assert SECRET not in problem
    assert log.read_text() == f"cannot log in with {SECRET}\n"


async def test_the_message_of_a_failure_is_cleaned_and_cut(tmp_path: Path):
    async with hub_of(tmp_path, "refusing") as hub:
        assert list(await hub.catalogue()) == []
        problem = hub.health()[0].problem
    assert problem.isprintable()
    assert "gone" in problem
    assert len(problem) < MAX_PROBLEM + 200


async def test_a_log_is_bounded_and_keeps_the_newest(tmp_path: Path):
    log = tmp_path / "logs" / "flooding.log"
    async with hub_of(tmp_path, "flooding") as hub:
        await hub.catalogue()
        for _ in range(3):
            await hub.call("flooding.get_time", {})
            assert log.stat().st_size < 2 * MAX_LOG_BYTES
    await until(lambda: log.read_text().endswith("the last line\n"))  # a thread copies the output


async def test_the_last_list_is_used_until_the_new_list_arrives(tmp_path: Path):
    connection = new_connection(ServerConfig("slow", entry("hesitating")), tmp_path)
    async with McpHub([connection], patience_s=60.0, preferences=confirming_preferences()) as hub:
        before = await hub.catalogue()
        await hub.call("slow.get_more", {})
        await until(lambda: connection.stale)
        assert await hub.catalogue() is await hub.catalogue() is before
        with pytest.raises(ServerError, match="'slow'"):
            await hub.call("slow.send_word", {})
        assert (await hub.call("slow.get_on", {})).output == "1 wait"
        await until(lambda: len(connection.specs) == 4)
        assert "slow.get_news" in await hub.catalogue()
        assert (await hub.call("slow.send_word", {})).success


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/mcp?key=${SECRET_KEY}",
        "ftp://${SECRET_KEY}",
        "http://[${SECRET_KEY}",
        "${SECRET_KEY}",
        "http://a:${SECRET_KEY}/",
    ],
)
async def test_a_wrong_address_shows_no_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str):
    monkeypatch.setenv("SECRET_KEY", SECRET)
    far = new_connection(ServerConfig("far", {"url": url}), tmp_path)
    async with McpHub([far]) as hub:
        assert list(await hub.catalogue()) == []
        (health,) = hub.health()
    assert health.state == "failed"
    assert health.problem
    assert SECRET not in health.problem


async def test_a_missing_variable_affects_only_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    late = ServerConfig("late", entry("unfit", env={"KEY": "${NOT_SET_HERE}"}))
    good = ServerConfig("good", entry("unfit"))
    async with McpHub([new_connection(one, tmp_path / "logs") for one in (late, good)], patience_s=60.0) as hub:
        assert list(await hub.catalogue()) == ["good.get_time"]
        problem = hub.health()[1].problem
    assert "NOT_SET_HERE" in problem
