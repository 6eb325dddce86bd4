"""What SQL would do, by parsing it: what is not surely a query counts as more."""

import itertools
import logging
import re
from collections.abc import Iterator
from functools import lru_cache

from packetgate.state.routing import Risk

_UNREAD, _UNPARSED = "SQL that cannot be read", "SQL that cannot be parsed"
UNREADABLE = frozenset({_UNREAD, _UNPARSED})
"""What is said of SQL that may be no SQL at all."""
MAX_CHARS = 20_000
"""Longer SQL is not read."""

_BEGINS = re.compile(
    r"\(?\s*"
    r"(?:select\b.+\bfrom\b|select\s+(?:[\d(*'\"]|\w+\s*\()|with\s+\w+.*\bas\s*\(|insert\s+(?:or\s+\w+\s+)?into\b|update\s+\S+\s+set\b"
    r"|delete\s+from\b|replace\s+into\b|merge\s+into\b|(?:create|alter|drop)\s+(?:or\s+replace\s+|temp\w*\s+|unique\s+)*"
    r"(?:table|view|index|schema|database|function|procedure|trigger|role|user|sequence|extension|materialized)\b"
    r"|truncate\s+(?:table\b|\w+\s*;?\s*$)|grant\s.+\bto\b|revoke\s.+\bfrom\b|copy\s+\S+\s+(?:from|to)\b"
    r"|attach\s+(?:database\b|')|pragma\s+\w+"
    r"|vacuum\b|call\s+\w+\s*\(|exec(?:ute)?\s+\w+\s*\(|explain\s+(?:analyze\s+)?(?:select|insert|update|delete)\b)",
    re.IGNORECASE | re.DOTALL,
)
MAX_STATEMENT = 2_000
MOST_PLACES = 8
"""Words of a text that may begin a statement, and places where one may end, that are tried."""
_KEYWORDS = re.compile(
    r"(?<![\w`'\".])(?:select|with|insert|update|delete|replace|create|alter|drop)(?=\s)", re.IGNORECASE
)
_MARKS = re.compile(r"[*=<>(]")
_CUTS = re.compile(
    r"[,;.?!]?\s+(?:and (?:tell|show|then)|so that|because|they|it|we|i)\b|[;.?!]\s|`|,\s", re.IGNORECASE
)
_POLITE = re.compile(r"[,.;]?\s+(?:please|pls|plz|thanks?|thx|for me|right now|now)\b.*", re.IGNORECASE | re.DOTALL)
_SPACE = re.compile(r"\s*")
_COMMENT_END = re.compile(r"\*/")
_EXPLAINS = re.compile(r"^\s*explain\s+(?:query\s+plan\s+)?(?=(?:select|with)\b)", re.IGNORECASE)
"""What asks for a plan, and runs nothing."""
_PLAIN_FUNCTIONS = frozenset(
    "abs age array_length bool_and bool_or char_length coalesce date date_part datetime iif ifnull instr json_array"
    " json_each json_extract json_object json_type julianday len length lower ltrim now nullif octet_length printf"
    " random regexp_replace replace round rtrim strftime string_agg substr substring time to_char to_date total trim"
    " typeof unixepoch upper version".split()
)


def looks_like_sql(text: str) -> bool:
    """Whether a text begins as a statement of SQL does, behind comments as well."""
    text = text[:MAX_CHARS]
    return any(_BEGINS.match(text, at) for at in _beginnings(text))


def statement_in(text: str) -> tuple[int, int] | None:
    """Return where a statement of SQL stands in a text, or None; it ends where what follows it is no SQL any more.

    What might be plain words ("select users from the list") is one only with a mark of SQL, or in capital letters.
    """
    for word in itertools.islice(_KEYWORDS.finditer(text[:MAX_CHARS]), MOST_PLACES):
        said = _POLITE.sub("", text[word.start() : word.start() + MAX_STATEMENT])
        if not _BEGINS.match(said) or not (word.group().isupper() or _MARKS.search(said)):
            continue
        ends = {len(said[:cut].rstrip(" .?!,;")) for cut in (len(said), *(one.start() for one in _CUTS.finditer(said)))}
        for end in sorted(ends, reverse=True)[:MOST_PLACES]:
            if _parses(said[:end]):
                return word.start(), word.start() + end
    return None


def _parses(said: str) -> bool:
    from sqlglot import exp

    parsed = _statements(said, "") if _BEGINS.match(said) else None
    return parsed is not None and len(parsed) == 1 and not isinstance(parsed[0], exp.Command)


def _beginnings(text: str) -> Iterator[int]:
    """Yield where a statement may begin behind white space and comments, each place once.

    A comment may end at any of its ends: which one counts depends on whether a database nests comments. Whatever a
    later comment could end at, the first one could end at too.
    """
    seen: set[int] = set()
    left, expands = [0], True
    while left:
        space = _SPACE.match(text, left.pop())
        at = space.end() if space else len(text)
        if at in seen:
            continue
        seen.add(at)
        yield at
        if text.startswith("--", at):
            end = text.find("\n", at)
            left += [end + 1] if end >= 0 else []
        elif expands and text.startswith("/*", at):
            expands = False
            left += [end.end() for end in _COMMENT_END.finditer(text, at + 2)]


@lru_cache(512)
def risk_of_sql(text: str) -> tuple[Risk, str]:
    """Return what a text of SQL may do, and the word for it.

    Queries, in which nothing but known functions is called, are a read. Statements that change rows or tables are a
    write. All else (`COPY`, `PRAGMA`, `ATTACH`, procedures, functions that are not known, what no dialect parses) is
    execution, since nobody can say what it does. The worst of several statements counts, and of several dialects.
    """
    if not text.strip() or len(text) > MAX_CHARS or "\x00" in text:
        return Risk.EXECUTE, _UNREAD
    # What a database runs and a parser takes for a comment: MySQL runs /*! ... */.
    if "/*!" in text or "/*+" in text:
        return Risk.EXECUTE, "SQL with instructions in comments"
    found = [_judged(_EXPLAINS.sub("", text), dialect) for dialect in ("postgres", "mysql", "sqlite")]
    known = [one for one in found if one is not None]
    if not known or ("\\" in text and len(known) < len(found)):  # where one string ends, another dialect reads on
        return Risk.EXECUTE, _UNPARSED
    return max(known, key=lambda one: one[0].severity)


def _judged(text: str, dialect: str) -> tuple[Risk, str] | None:
    """Return the worst of the statements, None where this dialect does not parse them."""
    statements = _statements(text, dialect)
    if statements is None:
        return None
    judged = [_of_statement(one) for one in statements]
    return max(judged, key=lambda one: one[0].severity) if judged else (Risk.EXECUTE, "SQL that says nothing")


def _statements(text: str, dialect: str) -> "list[object] | None":
    import sqlglot
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of each statement that it takes as a command
    try:
        return [one for one in sqlglot.parse(text, read=dialect) if one is not None]
    except (SqlglotError, RecursionError, ValueError):
        return None


def _of_statement(statement: "object") -> tuple[Risk, str]:
    from sqlglot import exp

    if not isinstance(statement, exp.Expression):
        return Risk.EXECUTE, _UNREAD
    word = statement.key.upper()
    changes = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable)
    if isinstance(statement, (exp.Grant, exp.Comment, *changes)):
        inner = [_called(statement)] if _called(statement) else []
        return (Risk.EXECUTE, inner[0]) if inner else (Risk.WRITE, f"`{word.removesuffix('TABLE')}`")
    queries = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.Describe, exp.Show)
    if not isinstance(statement, queries):
        return Risk.EXECUTE, f"`{word}`"
    inside = statement.find(*changes, exp.Into, exp.Lock, exp.Command, exp.PropertyEQ)
    if inside is not None:
        return (
            Risk.EXECUTE if isinstance(inside, exp.Command) else Risk.WRITE
        ), f"`{inside.key.upper()}` within a query"
    if isinstance(statement, exp.Describe) and statement.args.get("style"):
        return Risk.EXECUTE, "`EXPLAIN` with options"
    called = _called(statement)
    return (Risk.EXECUTE, called) if called else (Risk.READ, "one query")


def _called(statement: "object") -> str:
    """Return the first function in a statement that is not known to be harmless."""
    from sqlglot import exp

    assert isinstance(statement, exp.Expression)  # noqa: S101
    for table in statement.find_all(exp.Table):
        if isinstance(table.this, exp.Func) and not isinstance(table.this, exp.Anonymous | exp.GenerateSeries):
            return f"the function `{table.this.sql_name().lower()}`"
    for one in statement.find_all(exp.Anonymous, exp.AnonymousAggFunc):
        if one.name.lower() not in _PLAIN_FUNCTIONS:
            return f"the function `{one.name[:60]}`"
    return ""


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
