"""What may be done once and never again: taking the answer to a question, and using an approval."""

from collections.abc import Awaitable, Callable

Claim = Callable[[str], Awaitable[bool]]
"""Returns whether this is the first time ever that the key is claimed, by whatever process or history."""


def claims_in_memory() -> Claim:
    """Return claims that last as long as this process: for a graph whose sessions do not last longer either."""
    claimed: set[str] = set()

    async def claim(key: str) -> bool:
        new = key not in claimed
        claimed.add(key)
        return new

    return claim
