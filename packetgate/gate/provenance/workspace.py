"""Changes whose paths all lie inside the workspace, the folder in which Packetgate runs.

There, the agent's own text, text that a server listed or repeated, and the content of the changed files are ordinary.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packetgate.gate.provenance.actions import instruction_span
from packetgate.gate.provenance.sources import FreeText, OutputField, SourceTexts, is_listing
from packetgate.state.origins import ArgumentRole
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.roles import is_id, role_of, secret_reference_in
from packetgate.tools.text.values import fold_text, leaves, plain_text
from packetgate.tools.text.words import words_of

_FILE_WORDS = frozenset({"path", "file", "filename", "filepath", "folder", "directory", "dir"})
_PATH_WORDS = _FILE_WORDS | {"source", "src", "destination", "dest", "target", "from", "to"}
_BUILTIN = "ai"
_MIN_NAME_CHARS = 4


@dataclass(frozen=True)
class WorkspaceChange:
    """A change of files that all lie inside the workspace."""

    server: str
    paths: Mapping[str, Mapping[str, tuple[str, ...]]]
    """For each argument with paths, the names of each path: absolute, relative, and the name of the file; folded."""

    def is_ordinary(self, source: FreeText) -> bool:
        """Return whether a text is content of the changed files."""
        names = {name for paths in self.paths.values() for names in paths.values() for name in names}
        return source.call is not None and not _paths_of(source.call).isdisjoint(names)

    def suspicious(self, action: str, sources: SourceTexts) -> SourceTexts:
        """Return the evidence without texts that are no reason for suspicion, and with the paths that the agent chose.

        Of a listing, only the lines that ask for the action remain; of the agent's own change, no output.
        """
        own = [call for call in sources.earlier if call.status is ToolExecutionStatus.EXECUTED and _is_change(call)]
        written = [fold_text(str(leaf.value)) for call in own for leaf in leaves(call.params)]
        texts = [
            text
            for source in sources.free_texts
            if not any(source.folded in one for one in written)
            if not (self.is_ordinary(source) and source.call and _is_change(source.call))
            for is_list in [source.tool.partition(".")[0] == self.server and is_listing(source.tool)]
            for text in (_asking_lines(action, source) if is_list else (source,))
        ]
        chosen = [OutputField(call.tool_name, name) for call in own for name in _paths_of(call)]
        return replace(sources, free_texts=tuple(texts), fields=(*sources.fields, *chosen))


def workspace_change(params: Mapping[str, Any], spec: ToolSpec) -> WorkspaceChange | None:
    """Return the change if its tool handles files and all its destinations are paths inside the workspace.

    Hidden files and folders, such as `.git`, and files that contain secrets or configure programs, do not count as
    inside. A relative path counts only for a server that is known to work on this machine.
    """
    if spec.risk is Risk.EXECUTE or ((spec.reaches_outside or spec.outward) and spec.server != _BUILTIN):
        return None
    is_local = spec.server == _BUILTIN or spec.outward is False
    paths: dict[str, dict[str, tuple[str, ...]]] = {}
    for leaf in (leaf for name, value in params.items() for leaf in leaves(value, name)):
        name, key = leaf.keys[0], leaf.keys[-1]
        if isinstance(leaf.value, str) and not is_id(key) and not _PATH_WORDS.isdisjoint(_words(key)):
            names = _names(leaf.value)
            if not names or not (is_local or Path(leaf.value).is_absolute()):
                return None
            paths.setdefault(name, {})[leaf.value] = names
        elif role_of(leaf.keys, spec.parameters.get(name, {}), leaf.value) is ArgumentRole.DESTINATION:
            return None
    tool_words = {*_words(spec.upstream_name), *(word for name in params for word in _words(name))}
    return WorkspaceChange(spec.server, paths) if paths and not tool_words.isdisjoint(_FILE_WORDS) else None


def _is_change(call: ToolCall) -> bool:
    return call.apparent_risk is not Risk.READ


def _paths_of(call: ToolCall) -> set[str]:
    texts = (leaf.value for leaf in leaves(call.params) if isinstance(leaf.value, str))
    return {name for text in texts for name in _names(text)}


def _asking_lines(action: str, source: FreeText) -> Iterator[FreeText]:
    lines = (source.call.result.server_text if source.call and source.call.result else source.text).splitlines()
    for line in map(plain_text, lines):
        if len(line.split()) > 2 and instruction_span(action, line.lower()):
            yield replace(source, text=line)


def _names(text: str) -> tuple[str, ...]:
    """Return the names of a path inside the workspace; nothing if it is outside, hidden, secret or not a path."""
    if not text.strip() or "://" in text or "\n" in text or "\0" in text:
        return ()
    try:
        root = Path.cwd().resolve()
        path = (root / Path(text).expanduser()).resolve()
        home, is_file = Path.home().resolve(), path.is_file()
    except (OSError, RuntimeError, ValueError):
        return ()
    if home.is_relative_to(root) or path == root or not path.is_relative_to(root):
        return ()
    relative = path.relative_to(root)
    is_hidden = any(part.startswith(".") for part in relative.parts)
    if is_hidden or secret_reference_in(relative.as_posix(), "path"):
        return ()
    names = [str(path), relative.as_posix(), path.name if len(path.name) >= _MIN_NAME_CHARS else str(path)]
    is_word = path.name.isalpha() and path.name.islower() and not is_file  # the name of a folder, such as tests
    return tuple(dict.fromkeys(fold_text(name) for name in names if not is_word or "/" in name))


def _words(name: str) -> list[str]:
    return [word.removesuffix("s") for word in words_of(name)]
