"""Test configuration: how many Hypothesis examples run, and with which seeds."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    "print_blob": True,
}
# CI: the same 200 examples per test every time. --deep: 20 000 new ones, the seed is printed on failure.
settings.register_profile("ci", max_examples=200, derandomize=True, database=None, **_COMMON)
settings.register_profile("deep", max_examples=20_000, phases=[Phase.generate, Phase.shrink], **_COMMON)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="20 000 examples per property instead of 200")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("deep" if config.getoption("--deep") else "ci")
    # The reference executor is meant to be compared on one core; two xdist workers share the machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
