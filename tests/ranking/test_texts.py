"""The texts of tools in a prompt."""

from support.tool_specs import PATH, a_tool

from packetgate.ranking.choice import tool_text


def test_tools_are_shown_in_full_in_brief_or_by_name():
    spec = a_tool("files.copy_file", "Copy a file. Twice.\n\nArgs:\n    path: Which.\n", path=PATH)
    full, brief = tool_text(spec, "full"), tool_text(spec, "brief")
    assert full == (
        "- files.copy_file: Copy a file. Twice.\n\nArgs:\n    path: Which.\n"
        "  arguments: {path?: string (The file to use.)}"
    )
    assert brief == "- files.copy_file: Copy a file. Twice."
    assert tool_text(spec, "name") == "- files.copy_file"


def test_a_brief_line_is_short_and_common_margins_are_removed():
    spec = a_tool("files.copy_file", f"Copy a file. {'Very ' * 17}well. {'Or not. ' * 9}")
    assert tool_text(spec, "brief") == "- files.copy_file: Copy a file."
    spec = a_tool("files.copy_file", "Copy a file.  \n\n    Use it to:\n      - copy \n    ")
    assert tool_text(spec, "full") == "- files.copy_file: Copy a file.\n\nUse it to:\n  - copy\n  arguments: {}"
