"""What `ai.edit` and `ai.append` do."""

from codecs import BOM_UTF8
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from packetgate.state.printing import counted, shorten
from packetgate.tools.builtin.failures import ToolFailure, os_failures
from packetgate.tools.builtin.paths import missing
from packetgate.tools.builtin.reading import MAX_READ_BYTES
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.text import decode, lines_of, read_bytes
from packetgate.tools.builtin.writing import MAX_DIFF_BYTES, WITHHELD, encode, put
from packetgate.tools.text.differences import difference

_LINES_NAMED = 10
_LINE_CHARS = 120


class Text(NamedTuple):
    """A file's text as it stands on disk."""

    name: str
    text: str
    mark: bytes
    """Its byte order mark, if it has one."""
    newline: str
    """The end of its lines: that of most of them."""

    def ended(self, said: str) -> str:
        """Return a text that somebody says, with the ends of lines of this one."""
        return said.replace("\r\n", "\n").replace("\n", self.newline)


def edit_text(root: Root, path: str, old_text: str, new_text: str, *, every: bool, dry_run: bool) -> str:
    """Replace a passage of a file, or tell what that would change, and return that in words with the difference.

    Raises:
        ToolFailure: the file is not there, not text or too large; it does not say that, or says it several times.
    """
    real = root.resolve(path)
    name = root.name(real)
    if not old_text:
        raise ToolFailure("old_text is empty: give the exact passage to replace, or use ai.append to add at the end")
    with os_failures(f"edit {name}"):
        if dry_run and root.withholds(name):
            return f"Would edit {name}\n[no difference shown: {WITHHELD}]"
        try:
            now = _present(root, real)
        except FileNotFoundError as error:
            raise missing(root, real, "file") from error
        old, new = now.ended(old_text), now.ended(new_text)
        if old not in now.text:  # its lines end in several ways
            old, new = old_text, new_text
        places = now.text.count(old)
        if not places:
            raise ToolFailure(_not_found(now, old_text))
        if places > 1 and not every:
            raise ToolFailure(
                f"{name} says that {places:,} times, on {_lines_of_all(now, old)}: give more of the text around it, "
                "or set every=true"
            )
        text = now.text.replace(old, new)
        if not dry_run:
            _replace(root, real, now, text)
    doing = "Would change" if dry_run else "Changed"
    return f"{doing} {counted(places, 'place')} in {name}\n{_difference(now, text)}"


def append_text(root: Root, path: str, text: str, *, dry_run: bool) -> str:
    """Add text on lines of its own at the end of a file, which is made where there is none.

    Raises:
        ToolFailure: it is a folder, not text, too large, or outside the root.
    """
    real = root.resolve(path)
    name = root.name(real)
    with os_failures(f"append to {name}"):
        if dry_run and root.withholds(name):
            return f"Would append to {name}\n[no difference shown: {WITHHELD}]"
        try:
            now, is_new = _present(root, real), False
        except FileNotFoundError:
            now, is_new = Text(name, "", b"", "\n"), True
        start = now.newline if now.text and not now.text.endswith("\n") else ""
        added = now.ended(text if text.endswith("\n") else f"{text}\n")
        whole = now.text + start + added
        if not dry_run:
            if is_new:
                with root.folder(real.parent, create=True) as folder:
                    put(folder, real.name, encode(added, name), "create", may_replace=False)
            else:
                _replace(root, real, now, whole)
    size = counted(len(lines_of(added)), "line")
    if is_new:
        told = f"{'Would create' if dry_run else 'Created'} {name} with {size}"
    else:
        told = f"{'Would append' if dry_run else 'Appended'} {size} to {name}"
    return f"{told}\n{_difference(now, whole)}"


def _present(root: Root, real: Path) -> Text:
    name = root.name(real)
    if real.is_dir():
        raise ToolFailure(f"{name} is a folder: name a file in it")
    data = read_bytes(root, real, MAX_READ_BYTES)
    mark = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
    text = decode(data, name)
    windows = text.count("\r\n")
    return Text(name, text, mark, "\r\n" if windows > text.count("\n") - windows else "\n")


def _replace(root: Root, real: Path, now: Text, text: str) -> None:
    """Put a text in a file's place in one step, unless somebody changed the file meanwhile."""
    data = now.mark + encode(text, now.name)
    if len(data) > MAX_READ_BYTES:
        raise ToolFailure(f"{now.name} would be too large: {len(data):,} bytes, the limit is {MAX_READ_BYTES:,}")
    if decode(read_bytes(root, real, MAX_READ_BYTES), now.name) != now.text:
        raise ToolFailure(f"{now.name} was changed by somebody else just now: read it again")
    with root.folder(real.parent) as folder:
        put(folder, real.name, data, "overwrite")


def _difference(now: Text, text: str) -> str:
    if max(len(now.text), len(text)) > MAX_DIFF_BYTES:
        return f"[no difference shown: {now.name} has more than {MAX_DIFF_BYTES:,} characters]"
    return difference(now.text, text, f"{now.name} before" if now.text else "/dev/null", f"{now.name} after")


def _lines_of_all(now: Text, old: str) -> str:
    numbers, at = list[int](), now.text.find(old)
    while at >= 0 and len(numbers) <= _LINES_NAMED:
        numbers.append(now.text.count("\n", 0, at) + 1)
        at = now.text.find(old, at + len(old))
    more = " and more" if len(numbers) > _LINES_NAMED else ""
    return f"lines {', '.join(map(str, dict.fromkeys(numbers[:_LINES_NAMED])))}{more}"


def _not_found(now: Text, old_text: str) -> str:
    lines = lines_of(now.text)
    wanted = old_text.strip().partition("\n")[0]
    folded = wanted.casefold()
    same = [number for number, line in enumerate(lines, 1) if folded and folded in line.casefold()]
    close = same or [lines.index(line) + 1 for line in get_close_matches(wanted, lines[:5_000], n=1)]
    told = f"{now.name} does not say {shorten(old_text, _LINE_CHARS)!r} exactly so"
    if not close:
        return f"{told}: read it first, and give the passage as it stands there"
    return f"{told}; nearest is line {close[0]}: {shorten(lines[close[0] - 1], _LINE_CHARS)!r}"
