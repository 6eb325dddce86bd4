from collections.abc import Iterator

import pytest
from support.browser import Browser, chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A window of headless Chromium."""
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
