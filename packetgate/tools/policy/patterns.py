r"""Compare argument values with the patterns of policy rules and grants.

`*` matches anything within one part of a path, `**` anything, and a backslash makes the next character literal. Values
that are not text are compared as JSON. A pattern such as `<= 100` or `>= 0, <= 100` compares numbers.

A value has a set of readings: programs read `1,000`, `https://a.example\@b.example` or `eve%b.example@a.example` in
different ways. `may_fit` is for rules that ask or deny: any reading is enough, such as a path after `..` and `%2e` are
resolved, or an address by its host, port and path. Text that a shell would expand is treated as a wildcard. `fits` is
for rules that allow: the value and all its readings fit literally. For `fits`, a wildcard matches only letters,
digits and a few marks of names; any other character must be in the pattern.
"""

import json
import math
import operator
import os
import re
import socket
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from ipaddress import IPv6Address
from pathlib import Path
from posixpath import normpath
from typing import Any
from urllib.parse import unquote

from packetgate.tools.text.hosts import host_in

ANYTHING = "**"
_FOLDER = "/**"
_MAX_DEPTH, _MAX_JSON_DEPTH = 100, 8
"""Deepest part of a value that is compared, and deepest list or object that is compared as JSON."""
_DECODINGS = 3
"""Number of decoding rounds for a value: some programs decode twice by mistake."""
_MAX_PATH = 4096
_MAX_NUMBER = 60
_FILE = re.compile(r"file:(?://localhost(?=/)|(?=/))/*|(?!https?:|wss?:)[a-z][a-z0-9+.-]*:(?://[^/]*(?=/))?")
_SEPARATORS = re.compile(r"""[\s,;|<>()\[\]{}"'`]+""")
_QUERY_MARKS = re.compile(r"[?&#=!]|(?<=.)(?=\b[a-z][a-z0-9+.-]*:[/\\])|^@|^[a-z-]+:(?=[a-z][a-z0-9+.-]*:)")
"""Marks before an address or a path inside another, such as the target of a redirect."""
_HOST_START = re.compile(r"(?<=[/\\])(?=(?:[\w-]+\.)+[a-z][\w-]+(?::\d+)?(?:[/\\?#]|$))", re.IGNORECASE)
_PLACE_MARKS = re.compile(r"[/\\@.]")
_SECOND_PLACE = re.compile(r"[,;|]\s*\S*[/\\]|\s(?:[/\\~]|\.\.|[a-z]:[/\\])", re.IGNORECASE)
_SECOND_ADDRESS = re.compile(r"[,;|][a-z][a-z0-9+.-]*:", re.IGNORECASE)
_NAME_MARKS, _COMMAND_MARKS = {*"_-.%/"}, {*"=,:@+~^'\""}
"""Characters other than letters and digits that an allow rule's wildcard matches, and more in a command line."""
_VARIABLE = re.compile(r"%[a-z_]\w*%", re.IGNORECASE)
_WILD = re.compile(r"[*?\[{]")
_COMPARISON = re.compile(r"\s*(<=|>=|<|>)\s*([-+]?\d+(?:\.\d+)?)\s*")
_OPERATORS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_MAILBOX = re.compile(r"([^@+]+)(\+[^@]*)?@([^@?]+?)\.?(?:\?.*)?", re.DOTALL)
_MAIL_COMMENT = re.compile(r"\([^()]*\)")
_MAIL_ROUTES = (
    (re.compile(r"(.+)%([^%@]+)@.+"), r"\1@\2"),
    (re.compile(r"(?:.*!)?([^!]+)!([^!@]+)(?:@.+)?"), r"\2@\1"),
    (re.compile(r"@[^:]+:(.+)"), r"\1"),
    (re.compile(r"(.+@.+)@.+"), r"\1"),
)
"""Mailboxes of other hosts in a local part: `eve%b.example@a.example`, `b.example!eve@a.example`, and others."""
_MAX_ROUTE = 10
_PLAIN_MAILBOX = re.compile(r"[\w.+~'=-]+@[\w-]+(?:\.[\w-]+)*")
_MAILBOX_PATTERN = re.compile(r"[^@\s/:]+@[\w*-]+(?:\.[\w*-]+)*")
_GROUP_SEPARATORS = re.compile(r"(?<=\d)[,.'\u2019\s_](?=\d)")
_BASED = re.compile(r"[-+]?0[xob][0-9a-f]+")
_MONEY = re.compile(
    r"^[$\u20ac\xa3\xa5]|[$\u20ac\xa3\xa5%]$|(?<=\d)\s*(?:usd|eur|gbp|chf)$|^(?:usd|eur|gbp|chf)(?=\s*\d)"
)
_COMMAND_ENDS = re.compile(r"[;|&\n()`{}]+")
_SHELL_SPACE = re.compile(r"\$(?:ifs\b|\{ifs\})", re.IGNORECASE)
_SHELL_MARKS = re.compile(r"\\\n|\$(?:\{\w*\}|\w+|[@*]|(?=[\"']))|[\"'\\]")
"""Matches parts that a shell removes from its words: quotes, backslashes, and variables without a value."""
_BRACED_WORDS = re.compile(r"(?<!\S)\{([^{},\s]+(?:,[^{},\s]*)+)\}(?!\S)")
_QUOTED = re.compile(r"\$?'(?:\\.|[^'\\])*'|\"[^\"]*\"")
_EXPANSION = re.compile(
    r"\$'(?:\\.|[^'\\]){0,200}'|\$\{[^{}]{0,200}\}|\$[a-z_]\w*|\$\([^()]{0,200}\)|`[^`]{0,200}`"
    r"|\[[^\]\s/]{1,99}\]|\{[^{}\s]{0,200}[,.][^{}\s]{0,200}\}|[*?]+",
    re.IGNORECASE,
)
_REDIRECTION = re.compile(r"\d*[<>]+")
_OTHER_FOLDER = re.compile(r"(?<!\S)(?:cd|pushd)\s+([^\s;&|]+?)/?\s*(?:;|&&)(.*)", re.DOTALL)
_WORD_START = re.compile(r"(?<=\s)(?=[\w.*])")
_OPTIONS = r"(?: -\S*(?: (?!-)\S+)?)* "
"""A space of a command pattern: options, each with or without a value, may be in its place."""
_MAX_PARTIAL = 40
_COPY_PLACE = re.compile(r"()(?:[^/\\@]*@)?([^/\\@:]{2,}):(?!//)(.*)", re.DOTALL)
_OPTION = re.compile(r"[^\w\s]{1,3}\w[\w-]*")
_PATTERN_PARTS = re.compile(r"\\.|\*\*|\*|[^*\\]+|\\", re.DOTALL)
_COMMAND_PARTS = re.compile(r" +|\\.|\*\*|\*|[^*\\ ]+|\\", re.DOTALL)
_AUTHORITIES = tuple(re.compile(rf"()?[/\\]*([^{end}]*)(.*)", re.DOTALL) for end in (r"/\\?#", "/?#", "/"))
"""An authority as parsed by WHATWG's URL standard, by RFC 3986, and by programs that look only for a slash."""
_SCHEME = re.compile(r"([a-z*][a-z0-9+.*-]*):(.*)", re.DOTALL)
_SITE_PATTERN = re.compile(r"([a-z*][a-z0-9+.*-]*)://([^/?#]*)(.*)", re.DOTALL)
_HOST_PATTERN = re.compile(r"()([\w*-]+(?:\.[\w*-]+)*\.[a-z][\w-]+(?::\d+)?)(/.*|)", re.DOTALL)
_PATH_PARAMETERS = re.compile(r";[^/]*")
_PORT = re.compile(r"(.*?)(?::(\d*))?", re.DOTALL)
_IP_NUMBERS = re.compile(r"[0-9a-fx.]*\d[0-9a-fx.]*")
_WEB = frozenset({"http", "https", "ws", "wss"})
_DEFAULT_PORTS = frozenset({"", "80", "443"})


def literal_pattern(value: Any) -> str:
    """Return the pattern that matches only this value."""
    return re.sub(r"[*\\]", r"\\\g<0>", _text_of(value))


def fits(value: Any, pattern: str) -> bool:
    """Return whether a value, or every element of a list, fits a pattern literally; a path with `..` never does."""
    if pattern == ANYTHING or _fits_literally(value, pattern):
        return True
    return isinstance(value, list) and bool(value) and all(_fits_literally(part, pattern) for part in value)


def may_fit(value: Any, pattern: str) -> bool:
    """Return whether any reading of a value, or of a part of the value, fits a pattern."""
    if comparisons := _comparisons(pattern):
        return any(_may_compare(part, comparisons) for part in _parts(value))
    pattern = _without_dot(_plain(_expand_home(pattern)))
    whole, site = _compiled(pattern), _site_of_pattern(pattern)
    folder = pattern.removesuffix(_FOLDER) if pattern.endswith(_FOLDER) and pattern != _FOLDER else None
    command = _compiled_command(pattern) if " " in pattern and "://" not in pattern else None
    return any(
        whole.fullmatch(form)
        or (folder and _compiled(folder).fullmatch(form))
        or (site and any(address.matches(site) for address in _sites_in(form)))
        or (site is None and "/" in pattern and _globs_overlap(form, pattern))
        or (command and any(map(command.fullmatch, _commands_in(form))))
        for text in _texts(value)
        for form in _forms(text)
    )


def is_date(value: Any) -> bool:
    """Return whether a value is a date, with or without a time."""
    if not isinstance(value, str) or "-" not in value:
        return False
    try:
        return bool(datetime.fromisoformat(value.strip()))
    except ValueError:
        return False


@dataclass(frozen=True)
class _Site:
    """The parts of an address, or of a pattern for addresses."""

    scheme: str
    host: str
    port: str
    """Empty for a default port."""
    path: str

    def matches(self, pattern: "_Site") -> bool:
        """Return whether this address matches a pattern.

        A pattern with a web scheme matches any scheme; without a port or a path, any port or path.
        """
        schemes_fit = pattern.scheme in _WEB or self.scheme in ("", pattern.scheme)
        paths = (self.path, f"{self.path}/")
        return (
            (schemes_fit or not pattern.scheme or "*" in pattern.scheme)
            and pattern.port in ("", self.port)
            and _compiled(pattern.host).fullmatch(self.host) is not None
            and (not pattern.path or any(_compiled(pattern.path).fullmatch(path) for path in paths))
        )


def _fits_literally(value: Any, pattern: str) -> bool:
    if literal_pattern(value) == pattern:
        return True
    text, pattern = _without_dot(_text_of(value)), _without_dot(pattern)
    if comparisons := _comparisons(pattern):
        return _is_number(value) and all(compare(Decimal(str(value)), limit) for compare, limit in comparisons)
    if _compiled(pattern).fullmatch(text) is None or _leaves_folder(text):
        return False
    if "*" not in pattern:
        return True
    if _SITE_PATTERN.fullmatch(pattern):
        return _is_at_site(text, pattern)
    if _MAILBOX_PATTERN.fullmatch(pattern):
        return _PLAIN_MAILBOX.fullmatch(text) is not None
    literal = "".join(part for part in _PATTERN_PARTS.findall(pattern) if part not in ("*", "**"))
    readings = "".join(f"{form}{unicodedata.normalize('NFKC', form)}" for form in _decoded(text))
    marks = {char for char in readings if unicodedata.category(char)[0] not in "LMN"}
    return (
        marks <= {*literal} | _NAME_MARKS | (_COMMAND_MARKS if " " in pattern else set())
        and ("@" not in pattern or text.count("@") == pattern.count("@"))
        and _VARIABLE.search(text) is None
        and _SECOND_PLACE.search(text) is None
        and ("/" not in pattern or _stays_below(text, pattern))
    )


def _without_dot(path: str) -> str:
    """Return a path without `./` at its start. A bare name keeps `./`: a shell looks up `deploy` elsewhere."""
    rest = path.removeprefix("./")
    return rest if "/" in rest else path


def _is_at_site(text: str, pattern: str) -> bool:
    """Return whether a text is one address, and its scheme, host, port and path fit a pattern, each by itself."""
    address, wanted = re.fullmatch(r"([^:/?#]+)://([^/?#]*)(.*)", text), _SITE_PATTERN.fullmatch(pattern)
    is_plain = re.search(r"[\s\\\"'<>`{}|^]", text) is None
    return (
        address is not None
        and wanted is not None
        and is_plain
        and host_in(address[2]) != ""
        and _SECOND_ADDRESS.search(text) is None
        and _is_read_as(text, pattern)
        and all(_compiled(one).fullmatch(part) for one, part in zip(wanted.groups(), address.groups(), strict=True))
    )


def _is_read_as(text: str, pattern: str) -> bool:
    """Return whether an address is at the site of a pattern, however programs read its authority and path."""
    site = _site_of_pattern(_plain(pattern))
    scheme = _SCHEME.fullmatch(_plain(text))
    return (
        site is not None
        and scheme is not None
        and all(
            one.matches(site)
            for form in _decoded(scheme[2])
            for authority in _AUTHORITIES
            if (match := authority.fullmatch(form))
            for one in [_site(scheme[1], match[2], match[3])]
        )
    )


def _stays_below(text: str, pattern: str) -> bool:
    """Return whether a path still fits a pattern after its links are resolved."""
    folder = pattern.partition("*")[0].rpartition("/")[0]
    try:
        path = Path.cwd() / Path(text).expanduser()
        real, real_folder = path.resolve(), Path(folder or "/" * pattern.startswith("/")).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):
        return False
    if real == path:
        return True
    rest = pattern[len(folder) :].lstrip("/")
    return _compiled(f"{literal_pattern(str(real_folder))}/{rest}").fullmatch(str(real)) is not None


@lru_cache(maxsize=1024)
def _comparisons(pattern: str) -> tuple[tuple[Callable[[Decimal, Decimal], bool], Decimal], ...]:
    """Return the comparisons of a pattern such as `>= 0, <= 100`; empty for another pattern."""
    matches = [_COMPARISON.fullmatch(part) for part in pattern.split(",")]
    return tuple((_OPERATORS[one[1]], Decimal(one[2])) for one in matches if one) if all(matches) else ()


def _may_compare(value: Any, comparisons: Iterable[tuple[Callable[[Decimal, Decimal], bool], Decimal]]) -> bool:
    """Return whether a reading of a number satisfies all comparisons, or the value cannot be read."""
    numbers = _numbers(value)
    return not numbers or any(all(compare(number, limit) for compare, limit in comparisons) for number in numbers)


def _parts(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, dict | list) and depth < _MAX_DEPTH:
        for part in value.values() if isinstance(value, dict) else value:
            yield from _parts(part, depth + 1)
    elif value is not None:
        yield value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _numbers(value: Any) -> set[Decimal]:
    """Return the readings of a number: in `1,000`, the comma is a separator of groups or of decimals."""
    text = _plain(_text_of(value)).strip()
    if len(text) > _MAX_NUMBER:
        return set()
    bare = _MONEY.sub("", _MONEY.sub("", text).strip()).strip()
    *groups, last = _GROUP_SEPARATORS.split(bare)
    decimals = f"{''.join(groups)}.{last}" if groups else bare
    is_grouped = re.match(r"\d{3}(?!\d)", last) or not re.search(r"[.,]\d+$", bare)
    spellings = {text, bare, decimals, "".join([*groups, last]) if is_grouped else decimals}
    readings = {number for one in spellings if (number := _decimal(one)) is not None}
    return readings | ({Decimal(int(bare, 0))} if _BASED.fullmatch(bare) else set())


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _globs_overlap(text: str, pattern: str) -> bool:
    """Return whether a text with wildcards may name a path that a pattern matches: their beginnings and ends agree."""
    if not _WILD.search(text) or re.search(r"\s|://", text):
        return False
    begins = (_WILD.split(text, maxsplit=1)[0], _WILD.split(pattern, maxsplit=1)[0])
    ends = (re.split(r"[*?\]}]", text)[-1][::-1], re.split(r"[*?\]}]", pattern)[-1][::-1])
    return all(one.startswith(other) or other.startswith(one) for one, other in (begins, ends))


def _text_of(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has only one type of number
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _leaves_folder(text: str) -> bool:
    decoded = _decoded(text)
    forms = (unicodedata.normalize("NFKC", form) for form in (*decoded, *map(_as_shell, decoded)))
    return any({".", ".."} & {*re.split(r"[/\\:{},;]", form)} for form in forms) or not text.isprintable()


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield a value, its elements and names, and the paths and addresses in its texts."""
    if isinstance(value, dict | list):
        if depth <= _MAX_JSON_DEPTH:
            yield _text_of(value)
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(inner, depth + 1) if depth < _MAX_DEPTH else ()
        return
    text = _text_of(value)
    yield text
    if isinstance(value, str) and len(text) <= _MAX_PATH:
        for form in dict.fromkeys(_decoded(text)):
            readings = {form, _MAIL_COMMENT.sub("", form), _as_shell(form), _as_expanded(form)}
            for word in {word for reading in readings for word in _SEPARATORS.split(reading)}:
                inner = (word[at.start() :] for at in _HOST_START.finditer(word)) if "://" in word else ()
                parts = dict.fromkeys([word, *_QUERY_MARKS.split(word), *word.split(":"), *inner])
                yield from (part for part in parts if part != text and _PLACE_MARKS.search(part))
                yield from _option_values(word)


def _option_values(word: str) -> Iterator[str]:
    """Yield the possible values of an option in one word: each end of `-xfsecrets/a`."""
    if option := _OPTION.match(word):
        yield from filter(None, (word[at:] for at in range(2, min(option.end() + 1, _MAX_NUMBER))))


def _forms(text: str) -> set[str]:
    """Return the readings of a text: decoded, as a resolved path, relative to the working folder, mailbox or number."""
    decodings = {
        form for decoded in _decoded(os.path.expandvars(text)) for form in (_plain(decoded), _plain(decoded).strip())
    }
    paths = {_FILE.sub("/", form) for form in decodings if form} | {_FILE.sub("", form) for form in decodings if form}
    resolved = {normpath(_expand_home(form.replace("\\", "/"))) for form in paths - {""}}
    if len(text) <= _MAX_PATH and "\n" not in text.strip():
        resolved |= {_plain(_resolve_links(form.strip().replace("\\", "/"))) for form in dict.fromkeys(_decoded(text))}
    here = f"{_plain(str(Path.cwd()))}/"
    resolved |= {f"{here}{form.lstrip('/')}" for form in resolved if len(form) <= _MAX_PATH}
    relative = {form.removeprefix(here) for form in resolved} | {form.lstrip("/") for form in resolved}
    mailboxes = {box for form in decodings for box in _mailboxes(form)} if len(text) <= _MAX_PATH else set[str]()
    return decodings | resolved | relative | mailboxes | {_text_of(float(number)) for number in _numbers(text)}


def _mailboxes(text: str) -> Iterator[str]:
    """Yield the mailboxes that programs may parse from a text: without comments, quotes and tags, and each route."""
    while (bare := _MAIL_COMMENT.sub("", text)) != text:
        text = bare
    text = re.sub(r"[\s\"\\]", "", text).removeprefix("mailto:")
    if sum(map(text.count, "%!@")) > _MAX_ROUTE:  # any word may be a mailbox's host
        yield from (f"a@{word}" for word in dict.fromkeys(re.findall(r"[\w.-]+", text)))
        return
    boxes = [text, *re.findall(r"<([^<>]+)>", text)]
    for box in boxes:  # grows: a route may lead to another
        boxes += [route.sub(other, box) for route, other in _MAIL_ROUTES if route.fullmatch(box)]
        if match := _MAILBOX.fullmatch(box):
            for host in {match[3], _host(match[3])}:
                yield from (f"{match[1]}{tag or ''}@{host}" for tag in ("", match[2]))


def _commands_in(text: str) -> Iterator[str]:
    """Yield the commands that a shell line may run: without quotes, with single spaces and the bare program name.

    Any word may be a program's name: many programs run the rest of their line, or a part of it. More words may follow:
    `xargs` adds them.
    """
    for words in {_as_shell(text), _as_expanded(text)}:
        for command in {words, *_COMMAND_ENDS.split(words.replace("\n", ";"))}:
            first = line = " ".join(command.split())
            while line:
                program, space, rest = line.partition(" ")
                for name in {program, program.rpartition("/")[2]}:
                    if line is first or name.strip("*"):  # otherwise each `$x` could be any program
                        yield from (f"{name}{space}{rest}", f"{name}{space}{rest} ")
                line = rest


def _as_shell(text: str) -> str:
    """Return a text as a shell reads its words."""
    return _SHELL_MARKS.sub("", _SHELL_SPACE.sub(" ", text))


def _as_expanded(text: str) -> str:
    """Return a text as a shell may expand it, with `*` for parts that are known only at run time."""
    text = _BRACED_WORDS.sub(lambda match: match[1].replace(",", " "), os.path.expandvars(text))
    text = _QUOTED.sub(lambda quoted: re.sub(r"\s", "_", quoted[0]), text)
    text = _REDIRECTION.sub(" ", _EXPANSION.sub("*", text))
    moved = _OTHER_FOLDER.search(text)
    return _as_shell(f"{text};{_WORD_START.sub(lambda _: f'{moved[1]}/', moved[2])}" if moved else text)


def _resolve_links(path: str) -> str:
    try:
        return str(Path(path).expanduser().resolve()) if len(path) <= _MAX_PATH else path
    except (OSError, RuntimeError, ValueError):  # not a path, or an unknown home folder
        return path


def _expand_home(text: str) -> str:
    return f"{_plain(str(Path.home()))}{text[1:]}" if text == "~" or text.startswith("~/") else text


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u3002", ".")
    if folded.isprintable():
        return folded
    return "".join(char for char in folded if char.isspace() or unicodedata.category(char) not in ("Cc", "Cf"))


def _decoded(text: str) -> list[str]:
    forms = [text]
    while len(forms) <= _DECODINGS and (more := unquote(forms[-1])) != forms[-1]:
        forms.append(more)
    return forms


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(map(_regex, _PATTERN_PARTS.findall(pattern))), re.DOTALL)


@lru_cache(maxsize=1024)
def _compiled_command(pattern: str) -> re.Pattern[str]:
    """Return the pattern of a command line, which may have options between its words, and `*` for unknown parts."""
    return re.compile("".join(map(_command_regex, _COMMAND_PARTS.findall(pattern))), re.DOTALL)


def _command_regex(word: str) -> str:
    if word.isspace():
        return _OPTIONS
    if word[0] in "*\\" or len(word) > _MAX_PARTIAL:
        return _regex(word)
    cuts = range(len(word) + 1)
    starts, ends = "|".join(re.escape(word[:at]) for at in cuts), "|".join(re.escape(word[at:]) for at in cuts)
    return rf"(?:{re.escape(word)}|(?:{starts})\*(?:\S*\*)?(?:{ends}))"


def _regex(part: str) -> str:
    wild = {"*": "[^/]*", "**": ".*"}
    literal = part[1:] if part.startswith("\\") and len(part) > 1 else part
    return wild.get(part) or re.escape(literal)


@lru_cache(maxsize=1024)
def _site_of_pattern(pattern: str) -> _Site | None:
    match = _SITE_PATTERN.fullmatch(pattern) or _HOST_PATTERN.fullmatch(pattern)
    return _site(*match.groups()) if match else None


def _sites_in(text: str) -> list[_Site]:
    bare = re.sub(r"[\t\r\n]", "", text).strip()
    scheme = _SCHEME.fullmatch(bare)
    matches = [one.fullmatch(rest) for rest in {bare, scheme[2] if scheme else bare} for one in _AUTHORITIES]
    sites = [
        _site(name, match[2], match[3]) for match in matches if match for name in {"", scheme[1] if scheme else ""}
    ]
    copied = _COPY_PLACE.fullmatch(bare)
    return [*sites, _site("", copied[2], f"/{copied[3].lstrip('/')}")] if copied else sites


def _site(scheme: str, authority: str, rest: str) -> _Site:
    match = _PORT.fullmatch(authority.rpartition("@")[2])
    host, port = (match[1], match[2] or "") if match else (authority, "")
    path = re.split(r"[?#]", rest.replace("\\", "/"), maxsplit=1)[0]
    resolved = normpath(_PATH_PARAMETERS.sub("", path)).replace("//", "/") if path else "/" * bool(rest)
    return _Site(scheme, _host(host), "" if port in _DEFAULT_PORTS else port, f"{resolved}{rest[len(path) :]}")


def _host(text: str) -> str:
    host = unquote(text).casefold().replace("\u3002", ".").strip("[]").rstrip(".")
    try:
        if ":" in host:
            address = IPv6Address(host)
            return str(address.ipv4_mapped or address)
        if _IP_NUMBERS.fullmatch(host):
            return socket.inet_ntoa(socket.inet_aton(host))
        return ".".join(map(_without_punycode, host.split(".")))
    except (OSError, ValueError):
        return host


def _without_punycode(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    return unicodedata.normalize("NFKC", label[4:].encode().decode("punycode")).casefold()
