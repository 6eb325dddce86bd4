"""Flag the arguments of a change whose paths all lie inside the workspace, the folder in which Packetgate runs.

There, values that the agent itself wrote, that the server returned as fields, or that a document of the same server
contains, are ordinary. A path is flagged if only free text names it, or if free text asks for this action on it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from packetgate.state.origins import ArgumentRole
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.provenance.actions import instruction_span, is_removal
from packetgate.tools.provenance.roles import is_id, role_of, secret_reference_in
from packetgate.tools.provenance.sources import FlagReason, FreeText, SourceTexts, TextPlace, is_listing
from packetgate.tools.provenance.values import find_words, fold_text, leaves, plain_text
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

_FILE_WORDS = frozenset({"path", "file", "filename", "filepath", "folder", "directory", "dir"})
_PATH_WORDS = _FILE_WORDS | {"source", "src", "destination", "dest", "target", "from", "to"}
_BUILTIN = "ai"
_MIN_NAME_CHARS = 4


@dataclass(frozen=True)
class WorkspaceChange:
    """A change of files that all lie inside the workspace."""

    spec: ToolSpec
    sources: SourceTexts
    paths: Mapping[str, tuple[tuple[str, ...], ...]]
    """For each argument with paths, the names of each path: absolute, relative, and the name of the file; folded."""

    @property
    def asks_for_removal(self) -> TextPlace | None:
        """The place where free text asks to remove or undo something, if the call does that."""
        is_undo = bool(self.spec.derived_parameters)  # nobody names its paths
        places = self._instructions if is_undo or is_removal(self.spec.upstream_name) else iter(())
        return next(places, None)

    def path_reason(self, name: str) -> FlagReason | None:
        """Return why a path of an argument is flagged."""
        for names in self.paths[name]:
            asking = next((place for place in self._places(names) if self._asks(place)), None)
            if asking is not None:
                return FlagReason(f"text that {asking.source.tool} returned asks for this action", asking)
            if self._is_known(names):
                continue
            naming = next((place for place in self._places(names) if not self._is_echo(place)), None)
            if naming is not None:
                return FlagReason(f"this destination appears only in text that {naming.source.tool} returned", naming)
        return None

    def is_ordinary(self, place: TextPlace) -> bool:
        """Return whether a value at this place is ordinary content of the changed files.

        The agent wrote it, the changed file contains it, or a document of the same server does, without asking for it.
        """
        is_own_server = place.source.tool.partition(".")[0] == self.spec.server
        return (
            self._is_own(place.source.folded[place.start : place.end])
            or self._is_output_about(place.source)
            or (is_own_server and not self._asks(place))
        )

    def _places(self, names: tuple[str, ...]) -> Iterator[TextPlace]:
        return (place for name in names for place in self.sources.places_of(name))

    @property
    def _instructions(self) -> Iterator[TextPlace]:
        for source in self.sources.free_texts:
            span = None if is_listing(source.tool) else instruction_span(self.spec.upstream_name, source.folded)
            if span and not self._is_own(TextPlace(source, *span).sentences(before=0)):
                yield TextPlace(source, *span)

    def _asks(self, place: TextPlace) -> bool:
        """Return whether the sentence of a place asks for the action. In a listing, the sentence is the line."""
        sentence = place.sentences(before=0)
        if self._is_output_about(place.source, changes=True):
            return False
        if is_listing(place.source.tool):
            part = place.source.folded[place.start : place.end]
            lines = [field.text for field in self.sources.fields if find_words(field.text, part) >= 0]
            return any(len(line.split()) > 2 and instruction_span(self.spec.upstream_name, line) for line in lines)
        return instruction_span(self.spec.upstream_name, sentence) is not None and not self._is_own(sentence)

    def _is_known(self, names: tuple[str, ...]) -> bool:
        """Return whether the user, the agent's earlier changes, or a field of the server name a path."""
        fields = (self.sources.fields_by_text.get(name) for name in names)
        return (
            any(self.sources.user.contain(name) for name in names)
            or any(
                not field.is_free_text and field.tool.partition(".")[0] == self.spec.server for field in fields if field
            )
            or any(find_words(text, name) >= 0 for name in names[:2] for text in self._own_texts)
        )

    def _is_own(self, text: str) -> bool:
        return any(text.strip(" .,;:!?") in own for own in self._own_texts)

    @cached_property
    def _own_texts(self) -> tuple[str, ...]:
        """The arguments of the agent's earlier changes, which were allowed or approved."""
        return tuple(
            fold_text(str(leaf.value))
            for call in self.sources.earlier
            if call.status is ToolExecutionStatus.EXECUTED and call.apparent_risk is not Risk.READ
            for leaf in leaves(call.params)
        )

    def _is_echo(self, place: TextPlace) -> bool:
        return is_listing(place.source.tool) or self._is_output_about(place.source)

    def _is_output_about(self, source: FreeText, *, changes: bool = False) -> bool:
        """Return whether a text is the output of a call with one of these paths, or only of a change with one."""
        is_change = self._outputs.get((source.tool, source.text))
        return is_change is not None and (is_change or not changes)

    @cached_property
    def _outputs(self) -> dict[tuple[str, str], bool]:
        """The outputs of calls with one of these paths, by tool and text, with whether a change returned them."""
        wanted = {name for paths in self.paths.values() for path in paths for name in path}
        outputs: dict[tuple[str, str], bool] = {}
        for call in self.sources.earlier:
            if call.result is not None and not wanted.isdisjoint(_names_in(call)):
                key = call.tool_name, plain_text(call.result.server_text)
                outputs[key] = outputs.get(key, False) or call.apparent_risk is not Risk.READ
        return outputs


def workspace_change(params: Mapping[str, Any], spec: ToolSpec, sources: SourceTexts) -> WorkspaceChange | None:
    """Return the change if its tool handles files and all its destinations are paths inside the workspace.

    Hidden files and folders, such as `.git`, and files that hold secrets or configure what may run, do not count as
    inside. A relative path counts only for a server that is known to work on this machine.
    """
    if spec.risk is Risk.EXECUTE or ((spec.reaches_outside or spec.outward) and spec.server != _BUILTIN):
        return None
    is_local = spec.server == _BUILTIN or spec.outward is False
    paths: dict[str, tuple[tuple[str, ...], ...]] = {}
    for name, value in params.items():
        found = []
        for leaf in leaves(value, name):
            key = leaf.keys[-1]
            is_path = isinstance(leaf.value, str) and not is_id(key) and not _PATH_WORDS.isdisjoint(_words(key))
            names = _names(str(leaf.value)) if is_path else None
            if is_path and (names is None or not (is_local or Path(leaf.value).is_absolute())):
                return None
            if (
                names is None
                and role_of(leaf.keys, spec.parameters.get(name, {}), leaf.value) is ArgumentRole.DESTINATION
            ):
                return None
            found += [names] if names else []
        paths |= {name: tuple(found)} if found else {}
    tool_words = {*_words(spec.upstream_name), *(word for name in params for word in _words(name))}
    return WorkspaceChange(spec, sources, paths) if paths and not tool_words.isdisjoint(_FILE_WORDS) else None


def _names_in(call: ToolCall) -> set[str]:
    texts = (leaf.value for leaf in leaves(call.params) if isinstance(leaf.value, str))
    return {name for text in texts for name in _names(text) or ()}


def _names(text: str) -> tuple[str, ...] | None:
    """Return the names of a path inside the workspace; None if it is outside, hidden, secret or no path."""
    if not text.strip() or "://" in text or "\n" in text or "\0" in text:
        return None
    try:
        root = Path.cwd().resolve()
        path = (root / Path(text).expanduser()).resolve()
        home, is_file = Path.home().resolve(), path.is_file()
    except (OSError, RuntimeError, ValueError):
        return None
    if home.is_relative_to(root) or path == root or not path.is_relative_to(root):
        return None
    relative = path.relative_to(root)
    is_hidden = any(part.startswith(".") for part in relative.parts)
    if is_hidden or secret_reference_in(relative.as_posix(), "path"):
        return None
    names = [str(path), relative.as_posix(), path.name if len(path.name) >= _MIN_NAME_CHARS else str(path)]
    is_word = path.name.isalpha() and path.name.islower() and not is_file  # the name of a folder, such as tests
    return tuple(dict.fromkeys(fold_text(name) for name in names if not is_word or "/" in name))


def _words(name: str) -> list[str]:
    return [word.removesuffix("s") for word in words_of(name)]
