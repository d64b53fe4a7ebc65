"""Functions during which the garbage collector waits."""

import gc
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
