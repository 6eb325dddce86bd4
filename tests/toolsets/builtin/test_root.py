"""Paths stay below the working folder, even if links replace folders and files in the meantime."""

from pathlib import Path

import pytest

from packetgate.toolsets.builtin.files import Root, ToolFailure, read_bytes


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.txt", "sub/../../secret.txt", "/etc/hosts", "~/secret.txt", "..", "link.txt", "away/secret.txt"),
        "../work-too/a.txt",  # a sibling with the same prefix
    ],
)
@pytest.mark.parametrize("tool", ["ai.read", "ai.write"])
async def test_paths_outside_the_folder_are_refused(fail, folder, unchanged, tool, path):
    (folder / "sub").mkdir()
    (folder.parent / "work-too").mkdir()
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "away").symlink_to(folder.parent)
    unchanged()
    arguments = {"content": "x", "mode": "overwrite", "dry_run": False} if tool == "ai.write" else {}
    error = await fail(tool, path=path, **arguments)
    assert error.startswith(f"{path!r} is outside the working folder {folder}")


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "~no-such-user/a", "loop", "\ud800"])
def test_unusable_paths_are_refused(folder, path):
    (folder / "loop").symlink_to("loop")
    with pytest.raises(ToolFailure, match=r"is not a (usable )?path"):
        Root(folder).resolve(path)


@pytest.mark.parametrize("path", ["a.txt", "./sub/../a.txt", "link.txt", "ABSOLUTE"])
async def test_paths_inside_the_folder_are_resolved(succeed, folder, path):
    (folder / "sub").mkdir()
    (folder / "a.txt").write_text("inside\n")
    (folder / "link.txt").symlink_to("a.txt")
    (folder.parent / "alias").symlink_to(folder)
    assert await succeed("ai.read", path=path.replace("ABSOLUTE", str(folder / "a.txt"))) == "inside\n"
    assert Root(folder.parent / "alias").resolve("a.txt") == folder / "a.txt"


@pytest.mark.parametrize("replaced", ["sub", "sub/secret.txt"])
def test_a_path_replaced_by_a_link_is_not_followed(folder, replaced):
    root = Root(folder)
    (folder / "sub").mkdir()
    (folder / "sub" / "secret.txt").write_text("inside\n")
    real = root.resolve("sub/secret.txt")
    (folder / replaced).rename(folder / "moved")
    (folder / replaced).symlink_to(folder.parent if replaced == "sub" else folder.parent / "secret.txt")
    with pytest.raises(OSError, match=r"sub|secret"):
        read_bytes(root, real, 100)


def test_new_folders_do_not_follow_a_new_link(folder):
    root = Root(folder)
    real = root.resolve("sub/deep")
    outside: Path = folder.parent / "outside"
    outside.mkdir()
    (folder / "sub").symlink_to(outside)
    with pytest.raises(OSError, match="sub"), root.folder(real, create=True):
        pass
    assert list(outside.iterdir()) == []
