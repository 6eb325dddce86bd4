"""The probability that a call is right, whichever decider selected it."""

from typing import Any

import pytest
from support.packets import FILES, packet, tool

from packetgate.deciders.packets import facts_of
from packetgate.reflex.calls import call_signals, request_to_judge
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


EARLIER = (("I keep the plan of the trip in trips/oslo.txt", "Noted."),)


@pytest.mark.parametrize(
    ("request_", "path", "is_right"),
    [
        ("open that file", "trips/oslo.txt", True),
        ("show me what stands in it", "trips/oslo.txt", True),
        ("open that file", "trips/rome.txt", False),
        ("open cakes.txt", "trips/oslo.txt", False),
        ("thank you, goodbye", "trips/oslo.txt", False),
    ],
)
def test_a_value_of_an_earlier_turn_is_right_if_the_request_refers_to_it(request_: str, path: str, is_right: bool):
    asked = packet(request_, history=EARLIER)
    call = facts_of(asked, FILES).traced_call(FILES["files.read_file"], {"path": path})
    assert (call_signals(call, asked, FILES).right > 0) == is_right


@pytest.mark.parametrize(
    ("history", "request_", "params", "judged"),
    [
        (EARLIER, "open that file", {"path": "trips/oslo.txt"}, "open that file (trips/oslo.txt)"),
        (EARLIER, "open oslo.txt", {"path": "trips/oslo.txt"}, "open oslo.txt"),
        (EARLIER, "open the first two", {"path": "a.txt", "lines": 2}, "open the first two"),
        (EARLIER, "open that file", {"path": "made-up.txt"}, "open that file"),
        ((), "open it", {"path": "a.txt"}, "open it"),
    ],
)
def test_the_judge_reads_values_of_earlier_turns_behind_the_request(
    history: Any, request_: str, params: dict[str, Any], judged: str
):
    asked = packet(request_, history=history)
    call = facts_of(asked, FILES).traced_call(FILES["files.read_file"], params)
    assert request_to_judge(call, asked, FILES) == judged
