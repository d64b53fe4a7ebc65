"""Einsum (einsum_view, sums and matrix products) against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import bittrue
from support.differential import assert_same
from support.floating_models import numbers, reals
from support.onnx_models import HERE, Checks, Refused, check, needs_measured, run_runtime, single

# What exporters and the layers of common libraries write.
EQUATIONS = """
    bij,jk->bik bhid,bhjd->bhij bhij,bhjd->bhid bqnd,bknd->bnqk bnqk,bknd->bqnd bhwc,hkc->bhwk i,j->ij bij,bjk
    nctkv,kvw->nctw
    ...ij,...jk->...ik bij,bij->b ij->ji ii->i ii i,i ij->i bfhd,bghd->bhfg abc,cd,de->abe ijk,jil->kl bn,anm,bm->ba
    """.split()


def draw_any(rng: np.random.Generator) -> str:
    letters = [str(v) for v in rng.choice(list("abijkXZ"), int(rng.integers(1, 6)), replace=False)]
    terms = []
    for _ in range(int(rng.choice([1, 2, 2, 2, 3]))):
        term = [str(v) for v in rng.choice(letters, int(rng.integers(0, 5)))]
        if rng.random() < 0.7:
            term = list(dict.fromkeys(term))
        if rng.random() < 0.25:
            term.insert(int(rng.integers(len(term) + 1)), "...")
        terms.append("".join(term))
    there = sorted({letter for term in terms for letter in term if letter != "."})
    kept = [letter for letter in there if rng.random() < 0.5]
    rng.shuffle(kept)
    if any("..." in term for term in terms) or rng.random() < 0.05:
        kept.insert(int(rng.integers(len(kept) + 1)), "...")
    return ",".join(terms) + ("" if rng.random() < 0.2 else "->" + "".join(kept))


def draw(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    equation = str(rng.choice(EQUATIONS)) if rng.random() < 0.5 else draw_any(rng)
    most = 40 if len(equation) < 13 and rng.random() < 0.3 else 6
    sizes = {letter: int(rng.integers(1, most)) for letter in sorted(set(equation))}
    hidden = [int(v) for v in rng.integers(1, 4, int(rng.integers(0, 3)))]
    inputs, odd = {}, rng.random() < 0.1
    for term in equation.split("->")[0].split(","):
        own = [1 if rng.random() < 0.2 else size for size in hidden]
        shape = [sizes[letter] for letter in term.replace("...", "")]
        if rng.random() < 0.1 and shape:
            shape[int(rng.integers(len(shape)))] = 1
        place = term.index("...") if "..." in term else 0
        x = (numbers if odd else reals)(rng, [*shape[:place], *(own if "..." in term else []), *shape[place:]])
        inputs[f"x{len(inputs)}"] = x
    spaced = (
        "".join(letter + " " * int(rng.random() < 0.1) for letter in equation).replace(". ", ".").replace("- ", "-")
    )
    constants = [name for name in inputs if len(inputs) > 1 and rng.random() < 0.2]
    return single(
        "Einsum",
        inputs,
        [TensorProto.FLOAT],
        {"equation": spaced},
        opset=int(rng.choice([12, 17, 21])),
        constants=constants,
    )


@needs_measured
def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        checks.add(*draw(rng), may_refuse=["BT-EINSUM-BROADCAST"])
    assert checks.outcomes.count("equal") > len(checks.outcomes) / 2


@needs_measured
@pytest.mark.parametrize("equation", ["bhid,bhjd->bhij", "...id,hjd->...hij", "bi,b->i"])
def test_free_dimensions(equation: str) -> None:
    """One session; sizes of 1 change what the products' rows and columns are."""
    letters = dict(zip("bhid.j", (3, 2, 5, 9, 4, 7), strict=True))
    terms = equation.partition("->")[0].replace("...", ".").split(",")
    rng = np.random.default_rng(5)
    first = {f"x{i}": reals(rng, [letters[a] for a in term]) for i, term in enumerate(terms)}
    content, _ = single("Einsum", first, [TensorProto.FLOAT], {"equation": equation})
    model = onnx.load_from_string(content)
    for value, term in zip(model.graph.input, terms, strict=True):
        for dimension, letter in zip(value.type.tensor_type.shape.dim, term, strict=True):
            dimension.dim_param = f"free_{ord(letter)}"
    session = bittrue.load(model.SerializeToString()).prepare(HERE)
    for one in ("", "b", "i", "h", "bj", "d"):
        sizes = {letter: 1 if letter in one else size for letter, size in letters.items()}
        feeds = [reals(rng, [sizes[a] for a in term]) for term in terms]
        theirs = run_runtime(model.SerializeToString(), feeds)
        assert not isinstance(theirs, Refused)
        for name, array in session.run(*feeds).items():
            assert_same(name, array, theirs[name])


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3)]),
        ("ij", [(2, 3), (3, 2)]),
        ("ij->ijk", [(2, 3)]),
        ("ij->ii", [(2, 3)]),
        ("i1->i", [(2, 3)]),
        ("i..->i", [(2, 3)]),
        ("...i->i", [(2, 3)]),
        ("ij,jk->ik", [(2, 3), (4, 2)]),
        ("ii->i", [(2, 3)]),
        ("ijk->i", [(2, 3)]),
        ("iX", [(2, 3)]),
    ],
)
def test_what_does_not_fit(equation: str, shapes: list[tuple[int, ...]]) -> None:
    inputs = {f"x{i}": np.ones(shape, np.float32) for i, shape in enumerate(shapes)}
    assert check(*single("Einsum", inputs, [TensorProto.FLOAT], {"equation": equation})) == "refused"
