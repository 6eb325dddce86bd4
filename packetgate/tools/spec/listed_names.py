"""Names under which other programs list tools and prompts: model providers refuse a request with a dot in a name."""

import re
from functools import lru_cache
from hashlib import sha256

MAX_CHARS = 64
SEPARATOR = "__"
HASH_CHARS = 8

_KEPT_CHARS = MAX_CHARS - HASH_CHARS - 1
_OTHER = re.compile(r"[^a-zA-Z0-9_-]+")
_HASHED = re.compile(rf"_[0-9a-f]{{{HASH_CHARS}}}$")


@lru_cache(maxsize=20_000)
def listed_name(server: str, name: str) -> str:
    """Return `server__name`, in at most 64 of `a-z`, `A-Z`, `0-9`, `_` and `-`.

    The result depends on these two names alone, so that it stays when other servers come or go. Where it does not tell
    both names exactly, it ends in a hash of them: where characters were replaced or cut off, or where another server
    and name could give the same.
    """
    plain = _OTHER.sub("_", f"{server}{SEPARATOR}{name}")
    is_exact = (
        plain == f"{server}{SEPARATOR}{name}"
        and len(plain) <= MAX_CHARS
        and SEPARATOR not in server
        and not server.endswith("_")
        and not _HASHED.search(plain)
    )
    if is_exact:
        return plain
    digest = sha256(f"{server}.{name}".encode(errors="replace")).hexdigest()[:HASH_CHARS]
    return f"{plain[:_KEPT_CHARS]}_{digest}"


def may_be_of(server: str, name: str) -> bool:
    """Whether a listed or a canonical name can be one of this server's."""
    return name.startswith((f"{server}.", _OTHER.sub("_", f"{server}{SEPARATOR}")[:_KEPT_CHARS]))
