"""All recorded layers of SNPS Caffe, each as a network read from its two files."""

from __future__ import annotations

import pytest

from bittrue.conformance.recorded.replay import replay
from support.shared import REPOSITORY, SHARED

FOLDER = SHARED / "golden" / "snps_caffe"


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the recorded vectors are not at {FOLDER}")
@pytest.mark.parametrize("executor", ["reference", "auto"])
def test_every_recorded_layer(executor: str) -> None:
    result = replay(FOLDER, executor=executor)
    unequal = [(outcome.case, str(outcome.first), outcome.refusal) for outcome in result.outcomes if not outcome.equal]
    assert not unequal, f"{len(unequal)} of {len(result.outcomes)}: {unequal[:5]}"
    assert len(result.outcomes) == 1414
    assert set(result.numerics) == {"snps_caffe", "snps_caffe-ev", "snps_caffe-sr"}


@pytest.mark.parametrize("executor", ["reference", "auto"])
def test_what_the_original_sources_gave(executor: str) -> None:
    """The layers' sources, unmodified: also over one and three axes, padded as TensorFlow does, with negative pads."""
    result = replay(REPOSITORY / "tests" / "data" / "recorded" / "snps_caffe_convolutions", executor=executor)
    assert [outcome.case for outcome in result.outcomes if not outcome.equal] == []
    assert len(result.outcomes) == 190
