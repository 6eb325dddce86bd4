"""The tool that undoes a change of another built-in tool."""

from typing import Annotated, Any

from pydantic import Field

from packetgate.state.printing import byte_size
from packetgate.state.routing import Risk
from packetgate.tools.builtin.changing import WITHHELD, CurrentFile
from packetgate.tools.builtin.file_operations import TOO_LARGE, FileOperations
from packetgate.tools.builtin.files import NotTextError, Root, ToolFailure, decode
from packetgate.tools.builtin.tool import BuiltinTool, DryRun
from packetgate.tools.builtin.undo_store import SHORT_ID, Change, UndoStore
from packetgate.tools.text.result_store import running_call_id


def undoing_tools(root: Root, store: UndoStore | None) -> tuple[BuiltinTool, ...]:
    """Return the tool that undoes recorded changes below `root`; none without a store."""
    if store is None:
        return ()
    operations = FileOperations(root, store)

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
    """Return what undoing a change does, and the difference for texts."""
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
    if root.withholds(path):
        return summary, f"\n{WITHHELD}"
    try:
        return summary, f"\n{CurrentFile(root, root.path / path).diff_to(decode(content or b'', path))}"
    except NotTextError as error:
        return summary, f"\n[no difference shown: {error}]"
