"""Functions during which the garbage collector waits."""

import gc
import subprocess
import sys
from typing import Any

import pytest

import bittrue
from bittrue.uncollected import uncollected


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_is_afterwards_as_it_was(collects: bool) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        assert uncollected(uncollected(gc.isenabled))() is False
        assert gc.isenabled() is collects
        with pytest.raises(ZeroDivisionError):
            uncollected(divmod)(1, 0)
        assert gc.isenabled() is collects
    finally:
        (gc.enable if was else gc.disable)()


_FIRST_AND_LATER = """
import gc
import weakref

from bittrue.uncollected import uncollected


class Thing:
    def __init__(self):
        self.itself = self


gc.collect()
make = uncollected(lambda: [weakref.ref(thing) for thing in [Thing() for _ in range(1000)]])
first = make()
assert gc.get_count()[0] < 100 and gc.get_freeze_count() == 0
later = make()
gc.collect(0)
assert all(thing() is not None for thing in first)
assert all(thing() is None for thing in later)
gc.collect()
assert all(thing() is None for thing in first)

# What a program has frozen stays frozen.
gc.freeze()
frozen = gc.get_freeze_count()
uncollected(list)()
assert gc.get_freeze_count() == frozen > 5000
"""


def test_what_comes_first_is_old_and_what_comes_later_is_not() -> None:
    # A process of its own: this one may have frozen objects.
    subprocess.run([sys.executable, "-c", _FIRST_AND_LATER], check=True)


def test_models_are_loaded_and_prepared_without_collections() -> None:
    seen: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        seen.append(phase)

    load: Any = bittrue.load
    model = bittrue.demo_model()
    was, thresholds = gc.isenabled(), gc.get_threshold()
    gc.enable()
    # Each time, there are objects enough for a collection of their own.
    gc.set_threshold(50)
    gc.callbacks.append(note)
    try:
        # Called as it is without `uncollected`.
        load.__wrapped__.__wrapped__(model).prepare.__func__.__wrapped__.__wrapped__(load(model))
        otherwise = len(seen)
        seen.clear()
        load(model).prepare()
        found = len(seen)
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*thresholds)
        (gc.enable if was else gc.disable)()
    assert found <= 4  # before, between and after the calls
    assert otherwise > 10 * found
