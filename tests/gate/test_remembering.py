"""What a remembered approval covers."""

import pytest
from support.tool_specs import a_tool

from packetgate.gate.remembering import _terms
from packetgate.state.origins import Origin, OriginKind
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.text.roles import role_of


@pytest.mark.parametrize("name", ["to", "recipient", "account", "chat"])
def test_a_number_that_is_a_destination_is_not_bounded_but_exact(name: str) -> None:
    spec = a_tool("bank.send", risk=Risk.WRITE, **{name: {"type": "integer"}, "amount": {"type": "number"}})
    origins = {name: Origin(kind=OriginKind.NOBODY, role=role_of((name,), spec.parameters[name], 4411))}
    call = ToolCall(tool_name="bank.send", params={name: 4411, "amount": 10}, risk=Risk.WRITE, provenance=origins)
    terms = _terms("always", call, spec)
    assert terms["at_most"] == {"amount": 10}
    assert terms["arguments"][name] == "4411"
