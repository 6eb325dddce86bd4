"""The probability that a call is right, whichever decider selected it."""

from typing import Any

import pytest
from support.packets import packet, tool

from packetgate.deciders.packets import facts_of
from packetgate.reflex.calls import call_signals
from packetgate.reflex.signals import CallSignals, call_log_odds
from packetgate.tools.catalogue.catalogue import Catalogue

TEXT, COUNT = {"type": "string"}, {"type": "integer"}
COLOUR = {"enum": ["red", "blue"], "type": "string"}
SHOP = Catalogue(
    [
        tool(
            "shop.order_item", "item", description="Orders an item.", item=TEXT, count=COUNT, colour=COLOUR, gift=TEXT
        ),
        tool("shop.find_shop", "city", description="Finds a shop in a city.", city=TEXT),
    ]
)
REQUEST = 'Order 3 items of "wool socks" in red'
RIGHT = {"item": "wool socks", "count": 3, "colour": "red"}


def seen(params: dict[str, Any], name: str = "shop.order_item", request: str = REQUEST) -> CallSignals:
    asked = packet(request)
    return call_signals(facts_of(asked, SHOP).traced_call(SHOP[name], params), asked, SHOP)


@pytest.mark.parametrize(
    ("params", "signal"),
    [
        (RIGHT | {"gift": "a card from mother"}, "added"),
        (RIGHT | {"item": "silk scarf"}, "invented"),
        (RIGHT | {"item": ""}, "invented"),
        (RIGHT | {"colour": "blue"}, "switched"),
        ({"item": "wool socks", "colour": "red"}, "left"),
    ],
)
def test_a_corrupted_call_is_less_probable(params: dict[str, Any], signal: str):
    right, spoilt = seen(RIGHT), seen(params)
    assert getattr(spoilt, signal) > getattr(right, signal) == 0
    assert call_log_odds(spoilt) < call_log_odds(right)


def test_a_call_of_another_tool_is_less_probable():
    other = seen({"city": "wool socks"}, "shop.find_shop")
    assert other.share < seen(RIGHT).share
    assert other.rival > 0
    assert call_log_odds(other) < call_log_odds(seen(RIGHT))
