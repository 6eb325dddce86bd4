from pathlib import Path

import pytest

from packetgate.toolsets.builtin.files import Root, ToolFailure, read_bytes


@pytest.mark.parametrize(
    "path", ["../secret.txt", "sub/../../secret.txt", "/etc/hosts", "~/secret.txt", "..", "link.txt", "away/secret.txt"]
)
@pytest.mark.parametrize("tool", ["ai.read", "ai.write"])
async def test_paths_outside_the_folder_are_refused(fail, folder, unchanged, tool, path):
    (folder / "sub").mkdir()
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "away").symlink_to(folder.parent)
    unchanged()
    arguments = {"content": "x", "mode": "overwrite", "dry_run": False} if tool == "ai.write" else {}

    error = await fail(tool, path=path, **arguments)

    assert error.startswith(f"{path!r} is outside the working folder {folder}")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "is not a path"),
        ("  ", "is not a path"),
        ("a\0b", "is not a path"),
        ("~no-such-user/a", "is not a usable path"),
        ("loop", "is not a usable path"),
    ],
)
async def test_unusable_paths_are_refused(fail, folder, path, says):
    (folder / "loop").symlink_to("loop")

    assert says in await fail("ai.read", path=path)


@pytest.mark.parametrize("path", ["a.txt", "./sub/../a.txt", "link.txt", "ABSOLUTE"])
async def test_paths_inside_the_folder_are_resolved(succeed, folder, path):
    (folder / "sub").mkdir()
    (folder / "a.txt").write_text("inside\n")
    (folder / "link.txt").symlink_to("a.txt")

    assert await succeed("ai.read", path=path.replace("ABSOLUTE", str(folder / "a.txt"))) == "inside\n"


async def test_the_root_may_be_a_link(folder, tmp_path):
    (tmp_path / "alias").symlink_to(folder)

    assert Root(tmp_path / "alias").resolve("a.txt") == folder / "a.txt"


def test_a_lone_surrogate_is_refused(folder):
    with pytest.raises(ToolFailure, match="not a usable path"):
        Root(folder).resolve("\ud800")


def test_a_sibling_with_the_same_prefix_is_outside(folder, tmp_path):
    (tmp_path / "work-too").mkdir()

    with pytest.raises(ToolFailure, match="outside the working folder"):
        Root(folder).resolve("../work-too/a.txt")


def test_a_folder_replaced_by_a_link_is_not_followed(folder):
    root = Root(folder)
    (folder / "sub").mkdir()
    (folder / "sub" / "secret.txt").write_text("inside\n")
    real = root.resolve("sub/secret.txt")
    (folder / "sub").rename(folder / "moved")
    (folder / "sub").symlink_to(folder.parent)

    with pytest.raises(OSError, match=r"sub|secret"):
        read_bytes(root, real, 100)


def test_a_file_replaced_by_a_link_is_not_followed(folder):
    root = Root(folder)
    (folder / "a.txt").write_text("inside\n")
    real = root.resolve("a.txt")
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(folder.parent / "secret.txt")

    with pytest.raises(OSError, match=r"a\.txt"):
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
