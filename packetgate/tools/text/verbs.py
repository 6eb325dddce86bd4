"""Verbs of tool names and requests, by what they indicate: reading, writing or executing."""

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

SENSES: dict[str, frozenset[str]] = {
    "read": frozenset(
        "cat display explain get open print quote read say says see show summarise summarize tell view".split()
    ),
    "list": frozenset("enumerate list ls show".split()),
    "search": frozenset("find grep look lookup query search where".split()),
    "write": frozenset("create generate make note overwrite put record save store write".split()),
    "append": frozenset("add append".split()),
    "execute": frozenset("call execute launch run start".split()),
    "convert": frozenset("convert translate".split()),
    "delete": frozenset("delete drop erase remove".split()),
}
"""Verbs in requests, by the verb in tool names that they may mean."""
KNOWN_VERBS = frozenset("check compare count describe fetch".split()).union(
    *SENSES.values(), WRITE_VERBS, EXECUTE_VERBS
)
"""Verbs that begin a request."""
WRITES = (WRITE_VERBS | SENSES["write"] | SENSES["append"] | SENSES["delete"]) - (
    SENSES["read"] | SENSES["search"] | SENSES["execute"]
)
EXECUTES = SENSES["execute"] | EXECUTE_VERBS
