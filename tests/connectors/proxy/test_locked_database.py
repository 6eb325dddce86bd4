"""While another process locks the database, changes fail fast without running; afterwards they run and are recorded."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from support.mcp_servers import until
from support.proxies import gateway_over, ledger_server, served, talking

from packetgate.connectors.proxy.recording import DATABASE_PATIENCE_S, QUIET_S


@contextmanager
def locked(home: Path, how: str) -> Iterator[None]:
    """Lock the database from another connection that writes."""
    with closing(sqlite3.connect(home / "packetgate.db", isolation_level=None)) as connection:
        connection.execute(f"BEGIN {how}")
        yield
        connection.execute("ROLLBACK")


def ended_calls(home: Path) -> int:
    with closing(sqlite3.connect(home / "packetgate.db")) as connection:
        (number,) = connection.execute(
            "SELECT count(*) FROM journal WHERE event IN ('call_ended', 'call_read')"
        ).fetchone()
    return number


@pytest.mark.slow
@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
async def test_no_change_runs_without_a_record_while_the_database_is_locked(
    tmp_path: Path, how: str, written: list[str]
) -> None:
    home = tmp_path / "home"
    async with (
        gateway_over(ledger_server(written), home=home, allow_write_tools=True) as gateway,
        served(gateway) as url,
        talking(gateway, url, answer=lambda *_: "yes") as talk,
    ):
        assert not (await talk.call("ledger.add_entry", text="one")).is_error
        await gateway.recorder.wait_until_written()
        before = ended_calls(home)
        with locked(home, how):
            result = await talk.call("ledger.add_entry", text="two")
            assert result.is_error
            assert "locked" in result.text
            assert not (await talk.call("ledger.list_entries")).is_error
            await asyncio.sleep(DATABASE_PATIENCE_S + QUIET_S + 1)  # recording the call fails
        assert written == ["one"]
        assert not (await talk.call("ledger.add_entry", text="three")).is_error
        assert '"three"' in (await talk.call("ledger.list_entries")).text
        await until(lambda: ended_calls(home) == before + 3)
    assert written == ["one", "three"]
