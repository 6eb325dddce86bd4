import pytest
from support.proxies import ClientKind


@pytest.fixture(params=[ClientKind("sdk", "legacy"), ClientKind("fastmcp", "2026-07-28")], ids=str)
def kind(request: pytest.FixtureRequest) -> ClientKind:
    """Each combination of client library and protocol."""
    return request.param


@pytest.fixture
def written() -> list[str]:
    """The entries of the ledger."""
    return []
