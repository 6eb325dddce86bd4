"""While another process locks the database: reads go on, what changes something fails fast, and nothing is lost."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from support.mcp_servers import until
from support.proxies import Era, gateway_over, ledger_server, served, talking

from packetgate.connectors.proxy import serving, storage


@contextmanager
def locked(home: Path, how: str) -> Iterator[None]:
    """Lock the database as another connection does that writes."""
    home.mkdir(exist_ok=True)
    with closing(sqlite3.connect(home / "packetgate.db", isolation_level=None)) as connection:
        connection.execute(f"BEGIN {how}")
        yield
        connection.execute("ROLLBACK")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "AGAIN_S", 0.05)
    for name in ("LOCKED_S", "QUICK_S"):
        monkeypatch.setattr(serving, name, 0.3)


def events(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "packetgate.db")) as connection:
        return [event for (event,) in connection.execute("SELECT event FROM journal ORDER BY seq")]


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
@pytest.mark.parametrize("when", ["from the start", "later"])
async def test_reads_go_on_and_changes_fail(tmp_path: Path, era: Era, how: str, when: str, written: list[str]) -> None:
    home = tmp_path / "home"
    if when == "from the start":
        with locked(home, how):
            async with (
                gateway_over(ledger_server(written), home=home, allow_write_tools=True) as gateway,
                served(gateway) as url,
                talking(f"{url}/mcp", "sdk", era, answer=lambda *_: "yes") as talk,
            ):
                assert not (await talk.call("ledger__list_entries")).is_error
                said = await talk.call("ledger__add_entry", text="x")
                assert said.is_error
                assert "locked" in said.text
        assert written == []
        return
    async with (
        gateway_over(ledger_server(written), home=home, allow_write_tools=True) as gateway,
        served(gateway) as url,
        talking(f"{url}/mcp", "sdk", era, answer=lambda *_: "yes") as talk,
    ):
        assert not (await talk.call("ledger__add_entry", text="one")).is_error
        await gateway.recorder.written()
        before = events(home).count("call_ended")
        with locked(home, how):
            for _ in range(3):
                said = await talk.call("ledger__list_entries")
                assert (said.is_error, said.text) == (False, '["one"]')
            assert not (await talk.call("set_context", query="list the entries")).is_error
            said = await talk.call("ledger__add_entry", text="two")
            assert said.is_error
            assert "locked" in said.text
            assert written == ["one"]
        await until(lambda: events(home).count("call_ended") == before + 3)
        assert not (await talk.call("ledger__add_entry", text="three")).is_error
        assert written == ["one", "three"]
