"""Damaged files end in a typed error or are read, quickly, and nothing else happens."""

import contextlib
import time

import numpy as np
import pytest

from bittrue.errors import BittrueError
from bittrue.graph import ModelFile
from bittrue.importers.tflite import read_tflite
from importers.tflite_build import DEMO, SHARED, dense, model_files, pack

SEED = 20261121
MUTATIONS = 2000
WORDS = (0, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 1, 2, 3, 4, 8, 16, 100, 255, 256, 65535, 65536)


def structure(content: bytes) -> np.ndarray:
    """Positions of all bytes that are not content of constants."""
    base = np.frombuffer(content, np.uint8)
    start = base.__array_interface__["data"][0]
    weights = np.zeros(base.size, bool)
    for graph in read_tflite(base).graphs:
        for tensor in graph.tensors:
            if tensor.data is not None and tensor.data.size > 4 and np.shares_memory(tensor.data, base):
                at = tensor.data.__array_interface__["data"][0] - start
                weights[at : at + tensor.data.nbytes] = True
    return np.flatnonzero(~weights)


def mutate(content: bytes, places: np.ndarray, random: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(int(random.integers(1, 4))):
        at = int(random.choice(places)) if random.random() < 0.9 else int(random.integers(len(content)))
        if len(changed) < 16:
            break
        at = min(at, len(changed) - 8)
        match int(random.integers(0, 10)):
            case 0 | 1:
                changed[at] ^= 1 << int(random.integers(8))
            case 2:
                changed[at] = int(random.integers(256))
            case 3 | 4 | 5:
                at &= ~3
                changed[at : at + 4] = int(random.choice(WORDS)).to_bytes(4, "little")
            case 6:
                at &= ~1
                changed[at : at + 2] = int(random.integers(65536)).to_bytes(2, "little")
            case 7:
                at &= ~3
                word = int.from_bytes(changed[at : at + 4], "little") + int(random.integers(-64, 64))
                changed[at : at + 4] = (word % 2**32).to_bytes(4, "little")
            case 8:
                length = int(random.integers(1, 64))
                other = int(random.choice(places))
                changed[at : at + length] = content[other : other + length]
            case 9 if random.random() < 0.3:
                del changed[at:]
            case _:
                del changed[at : at + int(random.integers(1, 9))]
    return bytes(changed)


def use(model: ModelFile) -> None:
    """What the planner does first with a model that was read."""
    for graph in model.graphs:
        for tensor in graph.tensors:
            if tensor.data is not None and tensor.type.bits:
                assert tensor.values().shape == tensor.shape
        for node in graph.nodes:
            assert all(index is None or graph.tensors[index].name for index in node.inputs)
            str(node)


def sources() -> list[object]:
    return [*model_files(largest=60_000), pytest.param(None, id="built")]


@pytest.mark.parametrize("path", sources())
def test_mutations(path) -> None:
    content = pack(dense()) if path is None else path.read_bytes()
    places = structure(content)
    random = np.random.default_rng([SEED, len(content)])
    small = len([file for file in SHARED.glob("*.tflite") if file.stat().st_size <= 60_000]) if SHARED.is_dir() else 0
    rounds = MUTATIONS // (2 + small) + 1
    codes: dict[str, int] = {}
    for turn in range(rounds):
        damaged = mutate(content, places, random)
        start = time.process_time()
        try:
            use(read_tflite(damaged))
            code = "read"
        except BittrueError as error:
            code = error.code
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}; seed {SEED}, file {path}, turn {turn}")
        assert time.process_time() - start < 5
        assert code == "read" or code.startswith("BT-")
        codes[code] = codes.get(code, 0) + 1
    # The mutations hit what they are aimed at.
    assert len(codes) >= 5
    assert codes.get("BT-FILE-BOUNDS", 0) > rounds // 10


def test_every_byte_of_the_structure() -> None:
    content = pack(dense())
    for at in structure(content):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            damaged = bytearray(content)
            damaged[at] = value
            # Any other exception fails the test.
            with contextlib.suppress(BittrueError):
                use(read_tflite(bytes(damaged)))


def test_demo_is_there() -> None:
    assert DEMO.exists()
