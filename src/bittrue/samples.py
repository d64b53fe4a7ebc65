"""The embedded example: a small int8 network of our own and a few real test digits (see tools/train_demo_model.py)."""

from __future__ import annotations

import io
from importlib import resources

import numpy as np

_FOLDER = ("data", "demo")


def _read(name: str) -> bytes:
    return resources.files("bittrue").joinpath(*_FOLDER, name).read_bytes()


def demo_model() -> bytes:
    """The bytes of an int8 .tflite model that recognises handwritten digits: input int8 [1, 8, 8, 1]."""
    return _read("digits_int8.tflite")


def demo_digits() -> tuple[np.ndarray, np.ndarray]:
    """(images, labels) of held-out digits: uint8 [N, 8, 8, 1] with grey values 0..16, and uint8 [N].

    Source: Alpaydin & Kaynak, Optical Recognition of Handwritten Digits, UCI 1998 (CC BY 4.0), by scikit-learn.
    """
    with np.load(io.BytesIO(_read("digits.npz")), allow_pickle=False) as archive:
        return archive["images"], archive["labels"]
