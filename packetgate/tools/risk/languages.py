"""Whether a text is a query that changes something, in languages beside SQL, told by the form of its clauses."""

import re

MAX_CHARS = 20_000

_COMMENTS = re.compile(r"(?:#|//)[^\n]*|/\*.*?\*/", re.DOTALL)
_FORMS: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    what: (re.compile(begins, re.IGNORECASE | re.DOTALL), re.compile(changes, re.IGNORECASE))
    for what, begins, changes in (
        ("a GraphQL mutation", r"", r"(?:^|[\s}])mutation\b\s*\w*\s*[({@]"),
        (
            "Cypher that changes the graph",
            r"\s*(?:call|create|explain|foreach|load|match|merge|optional|profile|unwind|with)\b",
            r"\b(?:delete\s+\w|set\s+[\w.]+\s*(?:[+:]?=|:)|remove\s+\w+[.:]|merge\s*\(|foreach\s*\(|load\s+csv\b"
            r"|create\s*\(|create\s+(?:or\s+replace\s+)?(?:alias|constraint|database|index|role|user)\b"
            r"|call\s+(?!db\.(?:labels|propertykeys|relationshiptypes|schema)\b)\w+(?:\.\w+)+)",
        ),
        (
            "SPARQL that changes the graph",
            r"",
            r"\b(?:insert|delete)\s+(?:data\s*|where\s*)?\{"
            r"|\b(?:add|clear|copy|create|drop|move)\s+(?:silent\s+)?(?:all|default|graph\s*<|named)\b",
        ),
        ("Flux that stores its result", r"", r"\|>\s*(?:\w+\.)*(?:to|post)\s*\("),
    )
}


def change_in(text: str) -> str:
    """Return what a text is that changes something in one of these languages; empty where it is none.

    What counts as a comment differs between them, so that a text is read with comments and without.
    """
    read = (text[:MAX_CHARS], _COMMENTS.sub(" ", text[:MAX_CHARS]).lstrip())
    return next(
        (
            what
            for what, (begins, changes) in _FORMS.items()
            for one in read
            if begins.match(read[1]) and changes.search(one)
        ),
        "",
    )
