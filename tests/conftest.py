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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="20 000 new examples per property")
    parser.addoption("--examples", type=int, default=200, metavar="N", help="N new examples per property")
    parser.addoption("--numerics", action="append", metavar="NAME", help="compare operators under these numerics only")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "numerics(*names): compare under these numerics only")
    # CI: the same 200 examples per property every time. Otherwise new ones; the seed is printed on failure.
    count = 20_000 if config.getoption("--deep") else config.getoption("--examples")
    if count == 200:
        settings.register_profile("bittrue", max_examples=count, derandomize=True, database=None, **_COMMON)
    else:
        phases = [Phase.generate, Phase.shrink]
        settings.register_profile("bittrue", max_examples=count, phases=phases, database=None, **_COMMON)
    settings.load_profile("bittrue")
    # The reference executor is meant to be compared on one core; two xdist workers share the machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures that tests recorded under "compared", "native" and "mutated", which -q would hide."""
    for title, key in (
        ("compared with the runtime, byte for byte", "compared"),
        ("native compared with the reference, byte for byte", "native"),
        ("mutated files", "mutated"),
    ):
        lines = sorted(
            value
            for report in terminalreporter.stats.get("passed", [])
            for name, value in report.user_properties
            if name == key
        )
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.write_line(line)
