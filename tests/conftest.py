"""Test configuration: how many examples a property sees, which of them follow from the seed, and what `--deep` runs."""

from __future__ import annotations

import gc
import itertools
import os
import random
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings

from support.seed import KEPT_SEED, seed_of_sources

# Examples of a property: fixed ones, and new ones that follow from the seed. Of a property that asks
# for another number itself, shares like these. The fixed ones are those of Hypothesis and the first ones of one seed.
# New ones find what fixed ones never will, so that few of those are enough.
FIXED, KEPT, NEW = 5, 4, 3
DEEP = 20_000


def _seed(text: str) -> int:
    return random.SystemRandom().getrandbits(32) if text == "random" else int(text)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help=f"{DEEP} new examples per property, and all long campaigns")
    parser.addoption("--examples", type=int, metavar="N", help="N new examples per property")
    parser.addoption(
        "--seed",
        type=_seed,
        metavar="N",
        help="of the new examples, 'random' for any; without it BITTRUE_SEED, or one that follows from the sources",
    )
    parser.addoption("--numerics", action="append", metavar="NAME", help="compare operators under these numerics only")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "numerics(*names): compare under these numerics only")
    config.addinivalue_line("markers", "deep: a long campaign, which runs with --deep only")
    config.addinivalue_line("markers", "in_turns(n, by=): of its parameters, or of one's values, one in n runs")
    config.addinivalue_line("markers", "long: takes seconds, so worker processes begin with it")
    if hasattr(config, "workerinput"):
        config.option.seed = config.workerinput["seed"]
    if config.option.seed is None:
        config.option.seed = _seed(os.environ.get("BITTRUE_SEED") or str(seed_of_sources()))
    if config.option.deep:
        config.option.examples = DEEP
    if "BITTRUE_TESTS_SHARE" not in os.environ:
        os.environ["BITTRUE_TESTS_SHARE"] = _own_folder(config)
    if config.getoption("numprocesses", None) and os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        _keep_compiled(config)
    settings.register_profile(
        "bittrue",
        max_examples=FIXED + KEPT + (config.option.examples or NEW),
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    settings.load_profile("bittrue")
    with suppress(ImportError):
        from hypothesis.internal.conjecture import providers

        # It would draw numbers out of imported modules, too: examples would follow from which tests ran before.
        providers.is_local_module_file = lambda path: False
    # The reference executor is meant to be compared on one core; two xdist workers share the machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _own_folder(config: pytest.Config) -> str:
    """A folder that is there until the run ends."""
    folder = tempfile.mkdtemp()
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder


def _keep_compiled(config: pytest.Config) -> None:
    """What Python compiles is kept for the run, in a folder of its own: hundreds of processes would compile all of it
    again.
    """
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = _own_folder(config)
    sys.dont_write_bytecode = False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """None of them for a few files, or where there is one core: their start costs more than it brings."""
    few = all(".py" in argument for argument in config.args)
    return 0 if few or len(os.sched_getaffinity(0)) == 1 else None


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that tests are made of is garbage: it is not looked at, neither while collecting nor later. What they
    keep for each other grows all along, so the rest is looked at seldom.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests in turns are chosen; every worker process gets an equal part of the long tests, and begins with them."""
    if not config.option.deep and not any("::" in argument for argument in config.args):
        _choose(config, items)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    if workers == 1:
        return
    long = [item for item in items if item.get_closest_marker("long")]
    others = iter([item for item in items if not item.get_closest_marker("long")])
    count, items[:] = len(items), []
    for worker in range(workers):
        # As xdist parts them: in a row, of equal lengths.
        end = len(items) + (count - len(items)) // (workers - worker)
        items += long[worker::workers]
        items += itertools.islice(others, max(end - len(items), 0))
    items += others


def _choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test in turns, one in n of its parameters, or of the values of one: those that the seed puts first, so that
    tests which share what they make for a value choose the same ones.
    """
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("in_turns"):
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
    waiting: set[pytest.Item] = set()
    for group in groups.values():
        left = group
        for mark in sorted(group[0].iter_markers("in_turns"), key=lambda mark: "by" not in mark.kwargs):
            by = mark.kwargs.get("by")
            words = {item: str(item.callspec.params[by]) if by else item.nodeid for item in left}
            order = sorted({*words.values()}, key=lambda word: zlib.crc32(f"{config.option.seed} {word}".encode()))
            kept = {*order[: -(-len(order) // mark.args[0])]}
            left = [item for item in left if words[item] in kept]
        waiting.update({*group}.difference(left))
    if waiting:
        config.hook.pytest_deselected(items=[item for item in items if item in waiting])
        items[:] = [item for item in items if item not in waiting]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """All workers of xdist have one seed."""
    node.workerinput["seed"] = node.config.option.seed


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Not in the report's head, which -q hides."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter:  # workers have none
        reporter.write_line(_again(session.config))


def _again(config: pytest.Config) -> str:
    return f"the same new examples again: --seed {config.option.seed}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Not by a mark, so that the summary has one line for all.
    if item.get_closest_marker("deep") and not item.config.option.deep:
        pytest.skip("long campaigns run with --deep")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A property runs with its fixed examples, then with its new ones."""
    if not is_hypothesis_test(pyfuncitem.obj):
        return None
    option = pyfuncitem.config.option
    test = getattr(pyfuncitem.obj, "__func__", pyfuncitem.obj)
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    # There is no public way to set the effort and the seed of a property per call.
    usual, seed = test._hypothesis_internal_use_settings, test._hypothesis_internal_use_seed
    new = option.examples or NEW
    every = FIXED + KEPT + new
    new = max(round(usual.max_examples * new / every), 1)
    fixed = -(-usual.max_examples * FIXED // every)
    phases = [phase for phase in usual.phases if phase != Phase.explicit]

    def seeded(seed: int, examples: int) -> None:
        test._hypothesis_internal_use_settings = settings(
            usual, max_examples=examples, derandomize=False, phases=phases
        )
        test._hypothesis_internal_use_seed = zlib.crc32(f"{seed} {pyfuncitem.nodeid}".encode())
        pyfuncitem.obj(**arguments)

    try:
        test._hypothesis_internal_use_settings = settings(usual, max_examples=fixed, derandomize=True)
        pyfuncitem.obj(**arguments)
        if usual.max_examples > fixed + new:
            seeded(KEPT_SEED, usual.max_examples - fixed - new)
        try:
            seeded(option.seed, new)
        except (Exception, pytest.fail.Exception):
            pyfuncitem.add_report_section("call", "a new example", _again(pyfuncitem.config))
            raise
    finally:
        test._hypothesis_internal_use_settings, test._hypothesis_internal_use_seed = usual, seed
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures that tests recorded under "compared", "native" and "mutated", which -q would hide; after failures the
    seed.
    """
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(_again(terminalreporter.config))
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
