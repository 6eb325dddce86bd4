"""Rate the risk of SQL, which is parsed, and of other query languages by their changing statements."""

import logging
import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from packetgate.state.routing import Risk
from packetgate.tools.risk.parameter_kinds import word_lists
from packetgate.tools.text.verbs import SURE_CHANGES, verb_kind
from packetgate.tools.text.words import words_of

if TYPE_CHECKING:
    from sqlglot import exp

_MAX_CHARS = 20_000
_MAX_STATEMENT = 2_000
_MAX_TRIES = 8
"""Maximum number of starts of a statement that are tried in a text, and of ends for each start."""
_NOT_READ, _NOT_PARSED = "SQL that cannot be read", "SQL that cannot be parsed"
UNREADABLE = frozenset({_NOT_READ, _NOT_PARSED})
"""Descriptions of texts that may not be SQL."""
_DIALECTS = ("postgres", "mysql", "sqlite")

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
_KEYWORDS = re.compile(
    r"(?<![\w`'\".])(?:select|with|insert|update|delete|replace|create|alter|drop)(?=\s)", re.IGNORECASE
)
_MARKS = re.compile(r"[*=<>(]")
_CUTS = re.compile(
    r"[,;.?!]?\s+(?:and (?:tell|show|then)|so that|because|they|it|we|i)\b|[;.?!]\s|`|,\s", re.IGNORECASE
)
_POLITE = re.compile(r"[,.;]?\s+(?:please|pls|plz|thanks?|thx|for me|right now|now)\b.*", re.IGNORECASE | re.DOTALL)
_COMMENT_END = re.compile(r"(?:\*/|\n)\s*")
_EXPLAIN = re.compile(r"^\s*explain\s+(?:query\s+plan\s+)?(?=(?:select|with)\b)", re.IGNORECASE)

_PLAIN_FUNCTIONS = word_lists("sql")["plain_functions"]
_DEFINED = word_lists("definitions")
_PIPED, _ABOUT_ANSWER = word_lists("pipelines"), word_lists("arguments")["about_answer"]
_COMMENTS = re.compile(r"(?:#|//)[^\n]*|/\*.*?\*/", re.DOTALL)
_PIPELINE = "a pipeline that changes, stores or sends its result"
_LANGUAGES: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
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
            r"|\b(?:add|clear|copy|create|drop|move)\s+(?:silent\s+)?(?:(?:all|default|named)\b|graph\s*<)"
            r"|\bload\s+(?:silent\s+)?<",
        ),
        ("Flux that stores or sends its result", r"", r"(?:\|>\s*(?:\w+\.\w+|to|post)|\bhttp\.post)\s*\("),
        ("IMAP that changes flags", r"", r"(?:^|\s)[+-]flags\S*\s+[(\\]|^\\(?:answered|deleted|draft|flagged|seen)$"),
        (
            "InfluxQL that changes the database",
            r"(?:alter|create|drop|kill)\s+(?:continuous|measurement|retention|series|shard|subscription)\b",
            r"",
        ),
        (
            _PIPELINE,
            r"",
            rf"(?:^|\s|\])\|\s*(?:{'|'.join(sorted(_PIPED['changes']))})\b",
        ),
    )
}
_QUERY = re.compile(
    r"\s*(?:(?:(?:explain|profile)\s+)?(?:(?:optional\s+)?match|unwind|with|return)\b|call\s+db\.labels\(\)\s*$"
    r"|(?:(?:prefix\s+[\w-]*:|base)\s*<[^<>]*>\s*)*(?:select|ask|describe|construct)\b|from\s*\()",
    re.IGNORECASE,
)
"""The beginning of a query in Cypher, SPARQL or Flux."""
_MORE_THAN_QUERY = re.compile(
    r"(?<![a-z_:/#?$@])(?<![a-z_)\]]\.)(?:call|create|delete|detach|drop|foreach|import|insert|load|merge|option|remove|set|to)\b"
    r"|\.\s*\w+\s*\(|[\\'\"`;]",
    re.IGNORECASE,
)
"""Statements that may change something, functions of packages, and, with `_MAY_HIDE`, text that may hide them."""
_STRINGS = re.compile(r"\"(?:\\[^u]|[^\"\\])*\"|'(?:\\[^u]|[^'\\])*'|`[^`]*`")
_MAY_HIDE = re.compile(r"//|/\*|#|--|\"{3}|'{3}")
_PRAGMA = re.compile(
    r"pragma[ _](?:\w+\.)?(?:\w+_list|\w+_x?info|(?:foreign_key|integrity|quick)_check)(?:\(.*| = .*)?", re.IGNORECASE
)
"""Pragmas and table functions that only describe a database of SQLite."""
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
_DELETING_STAGE = re.compile(r"(?:^|\s)\|\s*(?:delete|dump|script)\b", re.IGNORECASE)
_STAGE = re.compile(r"[|\[]\s*([a-z_]*)", re.IGNORECASE)
_DOT_COMMAND = re.compile(r"^\s*\.([a-z]+)(?=[\w-]*\s+\S)", re.IGNORECASE | re.MULTILINE)
_CHAIN = re.compile(r"\s*(?:db|g|r|(?-i:[A-Z]\w*))\s*\.")
_SHOWS = re.compile(r"\s*show\s[^;]*;?\s*", re.IGNORECASE)
_VERBS = (
    "alter|create|define|delete|drop|erase|exec(?:ute)?|grant|insert|merge|rebuild|relate|remove|revoke|set|truncate|update"
    "|upsert"
)
_CHANGING = rf"{_VERBS}|call(?!\s+db\.)|replace(?!\s*\()"
_CAPITALS = rf"{_VERBS.upper()}|CALL(?!\s+(?i:db)\.)|REPLACE(?!\s*\()"
_OBJECT = r"(?=\s*[({<]|\s+[^\s=<>!,;)|&+*/-])"
"""The object that a statement changes; a word without an object is a name."""
_CHANGE = re.compile(rf"(?<![\w:/#?$@.%|])(?<!\|\s)(?:{_CHANGING}){_OBJECT}", re.IGNORECASE)
_BEGINS_QUERY = re.compile(
    r"\s*(?:(?:for\s+\$?\w+\s+in|let\s+\$?\w+\s*:?=|select\s*[\d(*]|select\s.{1,999}\bfrom\b|with\s+\w+\s*(?:as\b|:=))"
    rf"|(?-i:(?:{_CAPITALS})\s+(?:[A-Z]{{2,}}\b|[\w`\"]+[.:(])))",
    re.IGNORECASE | re.DOTALL,
)
_CLAUSE = re.compile(rf"(?:[(;{{]\s*(?:{_CHANGING})|(?<!\|)(?<!\|\s)\b(?-i:{_CAPITALS})){_OBJECT}", re.IGNORECASE)
_STATEMENT_NAME = re.compile(
    r"\bAS (alter|create|delete|drop|exec(?:ute)?|insert|kill|merge|shutdown|update)\b", re.IGNORECASE
)
_METHOD = re.compile(r"\.\s*(\w+)\s*\(|[\"'](\$(?:out|merge|function|where|accumulator))\b")


def looks_like_sql(text: str) -> bool:
    """Return whether a text begins with a statement of SQL, possibly after comments.

    After a leading comment, a statement may begin after any `*/` or line end, because some databases nest comments.
    """
    text = text[:_MAX_CHARS].lstrip()
    comments = _COMMENT_END.finditer(text) if text.startswith(("--", "/*")) else ()
    return any(_BEGINS.match(text, at) for at in (0, *(comment.end() for comment in comments)))


def statement_in(text: str) -> tuple[int, int] | None:
    """Return the start and end of a SQL statement in a text, or None.

    The first keyword must be in capital letters, or the statement must contain a sign of SQL such as `*` or `=`.
    """
    from sqlglot import exp

    for word in islice(_KEYWORDS.finditer(text[:_MAX_CHARS]), _MAX_TRIES):
        rest = _POLITE.sub("", text[word.start() : word.start() + _MAX_STATEMENT])
        if not _BEGINS.match(rest) or not (word.group().isupper() or _MARKS.search(rest)):
            continue
        cuts = (len(rest), *(match.start() for match in _CUTS.finditer(rest)))
        ends = sorted({len(rest[:cut].rstrip(" .?!,;")) for cut in cuts}, reverse=True)
        for end in ends[:_MAX_TRIES]:
            parsed = _parsed(rest[:end], "") if _BEGINS.match(rest[:end]) else None
            if parsed is not None and len(parsed) == 1 and not isinstance(parsed[0], exp.Command):
                return word.start(), word.start() + end
    return None


@lru_cache(512)
def risk_of_sql(text: str) -> tuple[Risk, str]:
    """Return the worst risk of a SQL text in any statement and dialect, and a description of that statement.

    A query with only known functions is a read. A change of rows or tables is a write. Everything else is execution,
    such as `COPY`, `PRAGMA`, unknown functions, and text that cannot be parsed.
    """
    if not text.strip() or len(text) > _MAX_CHARS or "\x00" in text:
        return Risk.EXECUTE, _NOT_READ
    if "/*!" in text or "/*+" in text:  # MySQL executes such comments
        return Risk.EXECUTE, "SQL with instructions in comments"
    if _SHOWS.fullmatch(text):
        return Risk.READ, "a description"
    judged = [_risk_in(_EXPLAIN.sub("", text), dialect) for dialect in _DIALECTS]
    known = [one for one in judged if one is not None] or [*filter(None, [_risk_in(text, "tsql")])]
    if not known or ("\\" in text and len(known) < len(judged)):  # the dialects differ in where a string ends
        return Risk.EXECUTE, _NOT_PARSED
    return max(known, key=lambda one: one[0].severity)


def only_queries(text: str) -> bool:
    """Return whether a text is certainly a query in Cypher, SPARQL or Flux that changes nothing."""
    plain = text if _MAY_HIDE.search(text.replace("://", ":")) else _STRINGS.sub("0", text)
    is_query = len(text) <= _MAX_CHARS and _QUERY.match(plain) is not None and not change_in(text)
    return is_query and _MORE_THAN_QUERY.search(_QUERY.sub("", plain, count=1)) is None


def names_language(words: frozenset[str]) -> bool:
    """Return whether words of a parameter or a tool name a query language with statements that change something."""
    names = {word for word in words if word.endswith(("ql", "xquery")) or word in _DEFINED["languages"]}
    return bool(names - _DEFINED["searches"] - {"graphql", "gql"}) and not words >= {"graph", "ql"}


def change_in(text: str, languages: frozenset[str] = frozenset(), *, is_named: bool = False) -> str:
    """Return the description of a change in another query language, or an empty string.

    `languages` are words of the tool. In a language that they name, only known statements are reads. Comments differ
    between the languages, so a text is parsed with and without them. If the text is certainly in some language
    (`is_named`), any word of a change outside its strings counts. Otherwise, if the text begins like a query, such a
    word counts in capital letters or at the start of a clause.
    """
    text = text[:_MAX_CHARS]
    bare = _COMMENTS.sub(" ", text).lstrip()
    for what, (begins, changes) in _LANGUAGES.items():
        if begins.match(bare) and (changes.search(text) or changes.search(bare)):
            return what
    may_hide = _MAY_HIDE.search(text.replace("://", ":"))
    for plain in (text, bare) if may_hide else (_STRINGS.sub("0", text),):
        if word := _CHANGE.search(plain) if is_named else _BEGINS_QUERY.match(plain) and _CLAUSE.search(plain):
            return f"a query with `{word[0].strip('({; ')}`"
    for line in text.splitlines():
        at = _DELETING_STAGE.search(line)
        if at and (not at.start() or "=" in line[: at.start()]):
            return _PIPELINE
    is_kusto = bool(languages & {"kql", "kusto"})
    for command in _DOT_COMMAND.findall(text):
        if command.lower() != "show" and (is_kusto or verb_kind(command) in SURE_CHANGES):
            return f"the management command `.{command}`"
    if languages & {"spl", "splunk"}:
        stages = _STAGE.findall(_QUOTED.sub('""', text)) + ["`"] * ("`" in text)
        unknown = [stage for stage in stages if stage and stage.lower() not in _PIPED["reads"]]
        if unknown:
            return f"a pipeline with `{unknown[0]}`"
    for method, operator in _METHOD.findall(text) if _CHAIN.match(text) else ():
        verbs = (word for word in words_of(method) if verb_kind(word) in SURE_CHANGES)
        if operator or method == "property" or any(verb not in _ABOUT_ANSWER for verb in verbs):
            return f"a query with `{operator or method}`"
    return ""


def _parsed(text: str, dialect: str) -> "list[exp.Expr] | None":
    import sqlglot
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns about each statement that it does not parse
    try:
        return [statement for statement in sqlglot.parse(text, read=dialect) if statement is not None]
    except (SqlglotError, RecursionError, ValueError):
        return None


def _risk_in(text: str, dialect: str) -> tuple[Risk, str] | None:
    statements = _parsed(text, dialect)
    if statements is None:
        return None
    judged = [_risk_of_statement(statement) for statement in statements]
    return max(judged, key=lambda one: one[0].severity) if judged else (Risk.EXECUTE, "empty SQL")


def _risk_of_statement(statement: object) -> tuple[Risk, str]:
    from sqlglot import exp

    if not isinstance(statement, exp.Expression):
        return Risk.EXECUTE, _NOT_READ
    word, function = statement.key.upper(), _unknown_function(statement)
    if isinstance(statement, exp.Pragma) and _PRAGMA.fullmatch(statement.sql()):
        return Risk.READ, "a description"
    changes = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable)
    if isinstance(statement, (exp.Grant, exp.Comment, *changes)):
        return (Risk.EXECUTE, function) if function else (Risk.WRITE, f"`{word.removesuffix('TABLE')}`")
    if not isinstance(statement, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.Describe, exp.Show)):
        return Risk.EXECUTE, f"`{word}`"
    inner = statement.find(*changes, exp.Into, exp.Lock, exp.Command, exp.PropertyEQ)
    if inner is not None:
        risk = Risk.EXECUTE if isinstance(inner, exp.Command) else Risk.WRITE
        return risk, f"`{inner.key.upper()}` within a query"
    if isinstance(statement, exp.Describe) and statement.args.get("style"):
        return Risk.EXECUTE, "`EXPLAIN` with options"
    if function:
        return Risk.EXECUTE, function
    # `SELECT 1 DELETE FROM a` is parsed as a name, and is two statements for some systems
    second = _STATEMENT_NAME.search(_STRINGS.sub("0", statement.sql(comments=False)))
    return (Risk.EXECUTE, f"`{second[1]}` within a query") if second else (Risk.READ, "one query")


def _unknown_function(statement: "exp.Expression") -> str:
    from sqlglot import exp

    for table in statement.find_all(exp.Table):
        if isinstance(table.this, exp.Func) and not isinstance(table.this, exp.Anonymous | exp.GenerateSeries):
            return f"the function `{table.this.sql_name().lower()}`"
    for call in statement.find_all(exp.Anonymous, exp.AnonymousAggFunc):
        if call.name.lower() not in _PLAIN_FUNCTIONS and not _PRAGMA.fullmatch(call.name):
            return f"the function `{call.name[:60]}`"
    return ""
