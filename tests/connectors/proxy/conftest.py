import pytest
from support.proxies import LEGACY, MODERN, Protocol


@pytest.fixture(params=[LEGACY, MODERN])
def kind(request: pytest.FixtureRequest) -> Protocol:
    """Each of the two protocols."""
    return request.param


@pytest.fixture
def written() -> list[str]:
    """The entries of the ledger."""
    return []
