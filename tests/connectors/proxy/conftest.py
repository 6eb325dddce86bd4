from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.proxies import Era, Make, gateway_over, ledger_server, served


@pytest.fixture(params=["sdk", "fastmcp"])
def make(request: pytest.FixtureRequest) -> Make:
    """Whose client it is."""
    return request.param


@pytest.fixture(params=["legacy", "2026-07-28"])
def era(request: pytest.FixtureRequest) -> Era:
    """What it speaks."""
    return request.param


@pytest.fixture
def written() -> list[str]:
    """What was written to the ledger."""
    return []


@pytest.fixture
async def url(tmp_path: Path, written: list[str]) -> AsyncIterator[str]:
    """A proxy in front of a ledger and sixty tools more, writes switched off."""
    async with gateway_over(ledger_server(written, tools=60), home=tmp_path) as gateway, served(gateway) as address:
        yield f"{address}/mcp"
