"""The error without llama-cpp-python."""

import sys
from pathlib import Path

import pytest

from packetgate.models.llama.kind import check_installed
from packetgate.state.errors import ModelError


@pytest.mark.parametrize("has_compiler", [True, False])
def test_without_a_compiler_the_error_names_servers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_compiler: bool
) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    if has_compiler:
        (tmp_path / "g++").touch(mode=0o755)
    with pytest.raises(ModelError, match=r"pip install '\.\[local\]'") as raised:
        check_installed()
    assert ("llama-server:NAME" in str(raised.value)) is not has_compiler
