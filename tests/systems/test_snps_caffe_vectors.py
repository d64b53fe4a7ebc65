"""All recorded layers of SNPS Caffe, each as a network read from its two files."""

from __future__ import annotations

import pytest

from support.replays import replays
from support.shared import REPOSITORY, SHARED

FOLDER = SHARED / "golden" / "snps_caffe"


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the recorded vectors are not at {FOLDER}")
def test_every_recorded_layer() -> None:
    for executor, result in replays(FOLDER, ["reference", "auto"]).items():
        unequal = [(one.case, str(one.first), one.refusal) for one in result.outcomes if not one.equal]
        assert not unequal, f"{executor}: {len(unequal)} of {len(result.outcomes)}: {unequal[:5]}"
        assert len(result.outcomes) == 1414
        assert set(result.numerics) == {"snps_caffe", "snps_caffe-ev", "snps_caffe-sr"}


def test_what_the_original_sources_gave() -> None:
    """The layers' sources, unmodified: also over one and three axes, padded as TensorFlow does, with negative pads."""
    folder = REPOSITORY / "tests" / "data" / "recorded" / "snps_caffe_convolutions"
    for executor, result in replays(folder, ["reference", "auto"]).items():
        assert [outcome.case for outcome in result.outcomes if not outcome.equal] == [], executor
        assert len(result.outcomes) == 190
