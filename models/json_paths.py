"""Where in a JSON text each value begins, told while the text is still being written."""

from dataclasses import dataclass

Path = tuple[str | int, ...]

_SPACE = b" \t\r\n"


@dataclass
class _Level:
    """An object or an array that is not closed yet."""

    in_object: bool
    key: str = ""
    index: int = 0
    wants_key: bool = True


class JsonPaths:
    """Follows a JSON text piece by piece. Expects valid JSON: of any other text it may tell nonsense."""

    def __init__(self) -> None:
        self._levels: list[_Level] = []
        self._string: bytearray | None = None
        self._escaped = False
        self._in_value = False

    def feed(self, piece: bytes) -> list[tuple[Path, int]]:
        """Take the next piece; return the values that begin in it: each one's path, and its offset in the piece."""
        return [(path, at) for at, byte in enumerate(piece) if (path := self._step(byte)) is not None]

    def _step(self, byte: int) -> Path | None:
        if self._string is not None:
            self._in_string(self._string, byte)
            return None
        char = bytes((byte,))
        level = self._levels[-1] if self._levels else None
        if char in b",}]:":
            self._in_value = False
            if char == b",":
                self._next(level)
            elif char in b"}]" and self._levels:
                self._levels.pop()
            return None
        if char in _SPACE or self._in_value:
            return None
        if char == b'"':
            self._string = bytearray()
            if level is not None and level.in_object and level.wants_key:
                return None
        path = self._path()
        if char in b"{[":
            self._levels.append(_Level(in_object=char == b"{"))
        elif char != b'"':
            self._in_value = True
        return path

    def _in_string(self, string: bytearray, byte: int) -> None:
        if self._escaped or byte != ord('"'):
            self._escaped = byte == ord("\\") and not self._escaped
            string.append(byte)
            return
        level = self._levels[-1] if self._levels else None
        if level is not None and level.in_object and level.wants_key:
            level.key, level.wants_key = string.decode("utf-8", "replace"), False
        self._string = None

    @staticmethod
    def _next(level: _Level | None) -> None:
        if level is None:
            return
        level.index += 1
        level.wants_key = True

    def _path(self) -> Path:
        return tuple(level.key if level.in_object else level.index for level in self._levels)
