"""Find the words by which a request names a path."""

import re

_TOKEN = re.compile(r"[^\W_]+")
_SEPARATOR = re.compile(r"[/\\]")
_PATH = re.compile(r"[/\\]|[^\W_]\.[^\W_]{1,5}$")
_NAME_BEFORE, _NAME_AFTER = re.compile(r"\w[./\\-]\Z"), re.compile(r"[./\\-]\w")
_MIN_LETTERS = 3  # a shorter name says little
_MAX_PATH = 400


def words_for_path(path: str, words: str) -> str:
    """Return the part of `words` that names a path, or "": its last parts, or its name as words.

    `server.log` and `the server log` both name `logs/server.log`.
    """
    if len(path) > _MAX_PATH or not _PATH.search(path):
        return ""
    folded, parts = words.casefold(), [part for part in _SEPARATOR.split(path.casefold()) if part]
    for at in range(len(parts)):
        found = _find(folded, r"[/\\]".join(map(re.escape, parts[at:])))
        if found and sum(map(str.isalnum, parts[-1])) >= _MIN_LETTERS:
            return words[found.start() : found.end()]
    return _run_of(path, words)


def _find(text: str, pattern: str) -> re.Match[str] | None:
    return re.search(rf"(?<![\w./\\-])(?:\./)?{pattern}(?![\w-]|\.\w)", text)


def _run_of(path: str, words: str) -> str:
    """Return the longest run of words in a row that are all in the path, with all words of its name."""
    *folders, name = [part for part in _SEPARATOR.split(path) if part] or [""]
    stem = name.rpartition(".")[0] or name
    needed = {_form(token) for token in _TOKEN.findall(stem)}
    known = needed | {_form(token) for part in [*folders, name] for token in _TOKEN.findall(part)}
    if sum(map(len, needed)) < _MIN_LETTERS:
        return ""
    best, run = "", list[re.Match[str]]()
    for token in [*_TOKEN.finditer(words), None]:
        if token is not None and _form(token[0]) in known:
            run.append(token)
            continue
        if run and needed <= {_form(one[0]) for one in run}:
            first, last = run[0].start(), run[-1].end()
            is_part_of_a_name = _NAME_BEFORE.search(words, 0, first) or _NAME_AFTER.match(words, last)
            best = best if is_part_of_a_name else max(best, words[first:last], key=len)
        run = []
    return best


def _form(word: str) -> str:
    folded = word.casefold()
    return folded[:-1] if len(folded) > _MIN_LETTERS and folded.endswith("s") and not folded.endswith("ss") else folded
