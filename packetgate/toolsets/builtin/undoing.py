"""Reverse the changes of the built-in tools, and offer a tool for it."""

import os
from contextlib import suppress
from io import BytesIO
from typing import Annotated, Any

from pydantic import Field

from packetgate.state.printing import byte_size
from packetgate.state.routing import Risk
from packetgate.tools.text.result_store import running_call_id, running_session
from packetgate.toolsets.builtin.changing import CurrentFile
from packetgate.toolsets.builtin.file_operations import TOO_LARGE, FileOperations
from packetgate.toolsets.builtin.files import NotTextError, Root, ToolFailure, decode, read_bytes
from packetgate.toolsets.builtin.tool import BuiltinTool, DryRun
from packetgate.toolsets.builtin.undo_store import ABSENT, SHORT_ID, Change, History, UndoStore


class Undo(FileOperations):
    """Reverses the recorded changes of a root. Blocking."""

    def __init__(self, root: Root, store: UndoStore) -> None:
        super().__init__(root, store)
        self.store = store

    def undo(self, change: Change) -> None:
        """Reverse a recorded change. The undo is itself a recorded change.

        Raises:
            ToolFailure: the change is undone already, or its paths have changed since.
        """
        with self._lock():
            content = self.check_undo(change)
            path = self._root.path / change.path
            if change.destination:
                self.move(self._root.path / change.destination, path, change)
            elif change.before.kind == "absent":
                self.delete(path, change)
            elif change.before.kind == "folder":
                self.make_folder(path, change)
                with self._root.folder(path) as folder:
                    os.fchmod(folder, change.before.mode)
            elif change.before.kind == "link":
                with (
                    self._root.folder(path.parent, create=True) as folder,
                    self._recorded(path, ABSENT, change.before, change),
                ):
                    os.symlink(change.before.digest, path.name, dir_fd=folder)
            elif change.after.kind == "absent":
                self._write_atomically(path, BytesIO(content or b""), change.before.mode, undoes=change)
                with self._root.folder(path.parent) as folder, suppress(OSError):
                    times = (change.before.changed_ns, change.before.changed_ns)
                    os.utime(path.name, ns=times, dir_fd=folder, follow_symlinks=False)
            else:
                current = read_bytes(self._root, path)
                self.write(path, content or b"", current, change)

    def check_undo(self, change: Change) -> bytes | None:
        """Return the content that undoing the change would restore; None if it restores none.

        Raises:
            ToolFailure: the change cannot be undone; the message says why.
        """
        with self._lock():
            history = self.history()
            change = next((known for known in history.changes if known.number == change.number), change)
            if history.is_undone(change):
                raise ToolFailure(f"{change.label} is already undone")
            self._check_unchanged(change)
            if change.before.kind != "file" or change.destination:
                return None
            if not change.before.is_storable:
                raise ToolFailure(f"{change.label} cannot be undone: {TOO_LARGE}. {change.path} was such a file")
            content = self.store.content(change)
            if content is None:
                raise ToolFailure(
                    f"{change.label} cannot be undone: the earlier content of {change.path} is not stored any more, "
                    "because newer changes needed the space"
                )
            return content

    def history(self) -> History:
        """Return the recorded changes as the running session sees them."""
        with self._lock():
            return History(self.store.changes(), running_session(), str(self._root.path))

    def _check_unchanged(self, change: Change) -> None:
        doubt = ""
        if change.status == "unknown":
            doubt = f"{change.label} was interrupted, and it is not known whether it finished. "
        expected = {change.path: ABSENT if change.destination else change.after}
        if change.destination:
            expected[change.destination] = change.before
        for name, state in expected.items():
            path = self._root.path / name
            now = self.state_of(path)
            if now.is_like(state):
                continue
            if now.kind == "absent":
                difference = "does not exist any more"
            elif state.kind == "absent":
                difference = f"exists again, as a {now.kind}"
            else:
                difference = f"is now a {now.kind}" if now.kind != state.kind else "has other content now"
            raise ToolFailure(f"{doubt}{change.label} cannot be undone: {name} {difference}. Nothing was changed")
        path = self._root.path / change.path
        if change.before.kind == "absent" and change.after.kind == "folder" and any(path.iterdir()):
            raise ToolFailure(f"{change.label} cannot be undone: {change.path} is not empty. Nothing was changed")
        missing = set(self._missing_folders(path.parent)) - set(change.folders)
        if change.before.kind != "absent" and missing:
            raise ToolFailure(
                f"{change.label} cannot be undone: the folder {min(missing)} does not exist any more. "
                "Nothing was changed: make the folder, then undo again"
            )


def undoing_tools(root: Root, store: UndoStore | None) -> tuple[BuiltinTool, ...]:
    """Return the tool that undoes recorded changes below `root`; none without a store."""
    if store is None:
        return ()
    operations = Undo(root, store)

    def undo(
        change: Annotated[str, Field(description="The id of the change. Left out: the last change.")] = "",
        path: Annotated[str, Field(description="The file that was changed. Left out: any.")] = "",
        destination: Annotated[str, Field(description="Filled in for a move.")] = "",
        dry_run: DryRun = True,
    ) -> str:
        """Undo or revert the last change that was made to a file or folder here, and put it back as it was before.

        Returns: what was changed back, with the difference. A change is refused if its file was changed since.
        """
        found = operations.history().find(change, path)
        if change and (path, destination) != (found.path, found.destination):
            raise ToolFailure(f"{found.label} is not a change of {path or 'an unnamed path'}: leave `path` out")
        content = operations.check_undo(found)
        summary, difference = _description(found, content, root)
        if dry_run:
            lost = "" if found.after.is_storable else f"; this cannot be undone: {TOO_LARGE}"
            return f"Would undo {found.label}: {summary}{lost}{difference}"
        operations.undo(found)
        return (
            f"Undid {found.label}: {summary}. To make the change again, undo {running_call_id()[:SHORT_ID]}{difference}"
        )

    def resolve(params: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with the complete id and the paths of the change; unchanged if there is none."""
        change, path = params.get("change") or "", params.get("path") or ""
        if not isinstance(change, str) or not isinstance(path, str):
            return params
        try:
            found = operations.history().find(change, path)
        except ToolFailure:
            return params
        paths = {"path": found.path, **({"destination": found.destination} if found.destination else {})}
        return {**params, "change": found.call_id, **paths}

    derived = frozenset({"change", "path", "destination"})
    return (BuiltinTool(undo, Risk.WRITE, resolve=resolve, derived_parameters=derived),)


def _description(change: Change, content: bytes | None, root: Root) -> tuple[str, str]:
    """Return a description of undoing a change, and the difference for texts."""
    path = change.path
    if change.destination:
        return f"move {change.destination} back to {path}", ""
    what = "the folder " if "folder" in (change.before.kind, change.after.kind) else ""
    if change.before.kind == "absent":
        size = byte_size(change.after.size) if change.after.kind == "file" and change.after.is_storable else ""
        return f"delete {what}{path}{size and f', {size}'}", ""
    if change.before.kind != "file":
        return f"restore {what}{path}", ""
    verb = "restore" if change.after.kind == "absent" else "change back"
    summary = f"{verb} {path}, {byte_size(change.before.size)}"
    try:
        return summary, f"\n{CurrentFile(root, root.path / path).diff_to(decode(content or b'', path))}"
    except NotTextError as error:
        return summary, f"\n[no difference shown: {error}]"
