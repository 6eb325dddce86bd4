"""Find the words by which a request names a path."""

import re
from itertools import pairwise

_TOKEN = re.compile(r"[^\W_]+")
_SEPARATOR = re.compile(r"[/\\]")
_PATH = re.compile(r"[/\\]|[^\W_]\.[^\W_]{1,5}$")
_NAME_BEFORE, _NAME_AFTER = re.compile(r"\w[./\\-]\Z"), re.compile(r"[./\\-]\w")
_FILLERS = frozenset("a an the to of for from in on my our your his her their s".split())
_MIN_LETTERS = 3  # a shorter name says little
_MAX_PATH = 400


def words_for_path(path: str, words: str) -> str:
    """Return the part of `words` that names a path by its last parts or by its name as words; otherwise "".

    `server.log` and `the server log` both name `logs/server.log`.
    """
    folded, parts = words.casefold(), [part for part in _SEPARATOR.split(path.casefold()) if part]
    if len(path) > _MAX_PATH or not parts or not _PATH.search(path):
        return ""
    tails = (r"[/\\]".join(map(re.escape, parts[at:])) for at in range(len(parts)))
    for pattern in (re.escape(path.casefold()), *tails):
        found = _find(folded, pattern)
        if found and sum(map(str.isalnum, parts[-1])) >= _MIN_LETTERS:
            return words[found.start() : found.end()]
    return _run_of(path, words)


def _find(text: str, pattern: str) -> re.Match[str] | None:
    return re.search(rf"(?<![\w./\\-])(?:\./)?{pattern}(?![\w-]|\.\w)", text)


def _run_of(path: str, words: str) -> str:
    """Return the longest run of words that are all in the path, with all words of its name; fillers may come between.

    Two words count as one that is written without a space: `to-do` names `todo.txt`.
    """
    *folders, name = [part for part in _SEPARATOR.split(path) if part] or [""]
    stem = name.rpartition(".")[0] or name
    needed = {_form(token) for token in _TOKEN.findall(stem)}
    known = needed | {_form(token) for part in [*folders, name] for token in _TOKEN.findall(part)}
    if sum(map(len, needed)) < _MIN_LETTERS:
        return ""
    tokens = [*_TOKEN.finditer(words)]
    joined = {
        at: _form(one[0] + following[0])
        for at, (one, following) in enumerate(pairwise(tokens))
        if following.start() == one.end() + 1 and _form(one[0] + following[0]) in known
    }
    forms = [joined.get(at) or joined.get(at - 1) or _form(token[0]) for at, token in enumerate(tokens)]
    best, at = "", 0
    while at < len(tokens):
        last = at if forms[at] in known else -1
        end = at + 1
        while last >= 0 and end < len(tokens) and (forms[end] in known or forms[end] in _FILLERS):
            last = end if forms[end] in known else last
            end += 1
        if last >= 0 and needed <= {*forms[at : last + 1]}:
            start, stop = tokens[at].start(), tokens[last].end()
            is_part_of_a_name = _NAME_BEFORE.search(words, 0, start) or _NAME_AFTER.match(words, stop)
            best = best if is_part_of_a_name else max(best, words[start:stop], key=len)
        at = end
    return best


def _form(word: str) -> str:
    folded = word.casefold()
    return folded[:-1] if len(folded) > _MIN_LETTERS and folded.endswith("s") and not folded.endswith("ss") else folded
