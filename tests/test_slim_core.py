"""The core runs, and its tests pass, without the packages of the optional parts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CORE = [
    *("state", "prompts", "nodes", "deciders", "gate", "ranking", "tools/catalogue", "tools/checks", "tools/policy"),
    *("tools/text", "test_middleware.py", "test_router.py"),
    *("test_plugins.py", "test_decisions.py"),
]
NEED_NUMPY = [
    *("deciders/test_choosing.py", "deciders/language/test_native_selection.py", "deciders/language/test_warming.py"),
    *(
        "deciders/language/test_constrained_selections.py",
        "tools/catalogue/test_ledger.py",
        "tools/text/test_tokens.py",
    ),
]
"""Tests of the core with llama.cpp, or with a tokenizer that only the tests use."""
ROUTER = """
import support.slim_core
from langchain_core.language_models import FakeListChatModel
from support.prompts import written_call
import packetgate.middleware
from packetgate import create_router, reads

cancelled = []

@reads
def list_late_orders() -> list[str]:
    "List the orders that are late."
    return ["A-17", "B-4"]

def cancel_order(order: str) -> str:
    "Cancel an order."
    cancelled.append(order)
    return f"cancelled {order}"

tools, writes = [list_late_orders, cancel_order], {"allow_write_tools": True}
answers = [written_call("functions.list_late_orders"), "yes", "A-17 and B-4 are late."]
with create_router(FakeListChatModel(responses=answers), tools) as router:
    print(router.invoke("Which orders are late?").answer)
answers = [written_call("functions.cancel_order", order="B-4"), "yes", "B-4 is cancelled."]
with create_router(FakeListChatModel(responses=answers), tools, settings=writes) as router:
    turn = router.invoke("Cancel order B-4")
    print(cancelled, [one["name"] for one in turn.question.payload["action_requests"]])
    print(turn.question.approve().answer.splitlines()[0], cancelled)
with create_router(tools=tools, settings=writes) as router:
    print(router.invoke("/list_late_orders").answer)
    print(router.invoke("/cancel_order A-17").question is not None, cancelled)
    print(router.invoke("Which orders are late?").answer)
"""


def python(code: str) -> list[str]:
    """Return the lines that a program prints in a new process."""
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=TESTS, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_router_works_without_the_optional_packages():
    read, asked, approved, typed, *rest = python(ROUTER)
    assert read == "A-17 and B-4 are late."
    assert asked == "[] ['functions.cancel_order']"
    assert approved == "B-4 is cancelled. ['B-4']"
    assert typed == "functions.list_late_orders ():"
    assert "True ['B-4']" in rest
    assert rest[-1].startswith("This needs a language model, and none is configured: `create_router(model=...)`")


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_tests_of_the_core_pass_without_the_optional_packages():
    options = ["-p", "support.slim_core", "-q", "-n", "0", "-m", "not slow and not reflex"]
    options += [f"--ignore={TESTS / path}" for path in NEED_NUMPY]
    run = [sys.executable, "-m", "pytest", *options, *(str(TESTS / path) for path in CORE)]
    # llama_cpp is hidden here on purpose. With CI set, its tests would fail instead of being skipped.
    env = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(run, cwd=TESTS.parent, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5_000:]
