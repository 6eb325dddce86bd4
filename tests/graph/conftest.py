import pytest
from support.notebook import Notebook


@pytest.fixture
def notebook() -> Notebook:
    """A server with four notes: a to d."""
    return Notebook()
