"""What a tool may do to the world, judged from its name and from what its server says of it.

The server's annotations are hints from an untrusted party: they may raise the risk, and lower it only where the
configuration trusts the server. A name without a known verb counts as write.
"""

from typing import Protocol

from state.routing import Risk
from tools.text.words import words_of

READ_VERBS = frozenset(
    "analyze calculate check compare compute convert count describe diff discover echo evaluate explain explore extract"
    " fetch find get glob grep head inspect list lookup ls measure parse peek ping preview query read retrieve"
    " scan search select show stat status suggest summarize tail translate validate verify view".split()
)
WRITE_VERBS = frozenset(
    "accept add allocate append apply approve archive assign book buy cancel change clear close comment commit"
    " configure copy create delete disable drop edit enable erase fork generate grant import insert install invite"
    " invoke kill link lock log make mark merge modify move mute open order patch pay pin post publish purge push put"
    " rebase record register reject release remove rename replace reply reset restart restore revoke save schedule"
    " send set share sign stop store submit subscribe sync transfer trash trigger unlink unlock update upload upsert"
    " write".split()
)
EXECUTE_VERBS = frozenset(
    "bash call command deploy eval exec execute launch powershell run script shell sh spawn start sudo".split()
)


class Annotations(Protocol):
    """The MCP tool annotations that bear on risk; each None when the server says nothing."""

    read_only_hint: bool | None
    destructive_hint: bool | None


def risk_of(name: str, annotations: Annotations | None, *, trusted: bool) -> Risk:
    """Judge a tool by its upstream name and its annotations; the worse of the two counts."""
    by_name = _risk_of_name(name)
    if annotations is None:
        return by_name
    if annotations.read_only_hint:
        return Risk.READ if trusted else by_name
    if annotations.destructive_hint or annotations.read_only_hint is False:
        return max(by_name, Risk.WRITE, key=lambda risk: risk.severity)
    return by_name


def _risk_of_name(name: str) -> Risk:
    words = set(words_of(name))
    if words & EXECUTE_VERBS:
        return Risk.EXECUTE
    if words & WRITE_VERBS or not words & READ_VERBS:
        return Risk.WRITE
    return Risk.READ
