"""Results of evaluations, made up for pages."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;`|*_[a](javascript:x)\u202egnp.\x1b[31m\n"
)


def evaluation(classes: int = 12, samples: int = 2000, name: str = "class {}", flips: int = 7) -> dict[str, Any]:
    """A classification under two arithmetics, as `bittrue.evaluation.showing.shown` gives it."""
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, classes, samples)
    first = np.where(rng.random(samples) < 0.8, labels, rng.integers(0, classes, samples))
    second = first.copy()
    changed = rng.permutation(samples)[:flips]
    second[changed] = (first[changed] + 1) % classes
    margins = np.sort(rng.random(samples) ** 2)
    pairs = {"litert": first, "xnnpack": second}
    edges = np.linspace(0, 1, 41)
    names = [name.format(i) for i in range(classes)]
    rows = sorted(changed.tolist())
    return {
        "format": "bittrue-evaluation-1",
        "bittrue": "0.1.0",
        "given": {"model": f"models/{name}.tflite", "data": f"data/{name}", "recipe": "tf-mobilenet"},
        "model": ["0" * 64],
        "data": {"kind": "imagefolder", "samples": samples, "classes": names},
        "recipe": {"name": "tf-mobilenet", "digest": "1" * 64, "libraries": {"pillow": "12.0"}},
        "task": "classification",
        "numerics": list(pairs),
        "reset": True,
        "limit": None,
        "shard": [1, 1],
        "samples": samples,
        "labelled": samples,
        "errors": {"BT-IMAGE": 3},
        "headline": "top1",
        "metrics": {arithmetic: _figures(labels, answers, names) for arithmetic, answers in pairs.items()},
        "flips": [
            {
                "pair": list(pairs),
                "count": flips,
                "gained": int((second == labels)[changed].sum()),
                "lost": int((first == labels)[changed].sum()),
                "samples": [
                    {
                        "position": i,
                        "id": f"{name.format(i)}/{i:06}.jpg",
                        "label": int(labels[i]),
                        "input": "2" * 64,
                        "predictions": [int(first[i]), int(second[i])],
                        "margin": 0.5 / (k + 1),
                        "command": f"bittrue compare m.tflite@litert m.tflite@xnnpack --data 'd' --sample {i}",
                    }
                    for k, i in enumerate(rows)
                ],
            }
        ],
        "digests": {"litert": "3" * 64, "xnnpack": "6" * 64},
        "digest": "4" * 64,
        "unmet": [],
        "seconds": 1.5,
        "examples": {"BT-IMAGE": [{"position": 1, "id": f"{name}.jpg", "error": "the image cannot be decoded"}]},
        "margins": {
            "edges": edges.tolist(),
            "samples": {arithmetic: np.histogram(margins, edges)[0].tolist() for arithmetic in pairs},
            "flips": [np.histogram(margins[:flips], edges)[0].tolist()],
        },
        "thumbnails": {
            str(i): {"image": _image(i), "what": "image"}
            if k % 3
            else {"curve": [0.0, 0.7, 0.2, 1.0], "what": "values"}
            for k, i in enumerate(rows[: max(1, flips - 2)])
        },
        "thumbnails_note": "2 samples have other bytes by now" if flips > 2 else "",
    }


def anomalies(classes: int = 12, samples: int = 2000) -> dict[str, Any]:
    """Scores of two arithmetics for normal samples and anomalies."""
    rng = np.random.default_rng(0)
    edges = np.linspace(0, 10, 41)
    found = evaluation(classes, samples, flips=3)
    scores = [rng.gamma(4, 1, 300), rng.gamma(7, 1, 200)]
    curve = np.linspace(0, 1, 60)
    figures = {"auc": 0.8912, "normal": 300, "anomalies": 200}
    for flip in found["flips"][0]["samples"]:
        flip |= {"label": 1, "predictions": [5.25, 5.2500001], "margin": 0.0}
    found["flips"][0] |= {"gained": None, "lost": None}
    return {
        **found,
        "task": "anomaly",
        "headline": "auc",
        "metrics": dict.fromkeys(found["numerics"], figures),
        "margins": None,
        "scores": {
            "edges": edges.tolist(),
            "counts": {name: [np.histogram(some, edges)[0].tolist() for some in scores] for name in found["numerics"]},
            "roc": {name: np.stack([curve, curve**0.3], axis=1).tolist() for name in found["numerics"]},
        },
    }


def against_a_baseline(classes: int = 12, samples: int = 2000) -> dict[str, Any]:
    """Nothing flips between the arithmetics, and some answers changed since."""
    found = evaluation(classes, samples)
    answers = {**found["flips"][0], "pair": ["before", "now"]}
    found["flips"] = [{**answers, "pair": found["numerics"], "count": 0, "gained": None, "lost": None, "samples": []}]
    change = {"numerics": "litert", "metrics": {"top1": [0.9, 0.91], "right": [900, 910]}, "outputs": 12}
    found["baseline"] = {
        "folder": "before", "digest": "5" * 64, "differs": ["model"], "sources": 2, "errors": 1,
        "changes": [{**change, "answers": answers}],
    }  # fmt: skip
    return found | {"errors": {}, "examples": {}, "unmet": ["top1 of litert is 0.91, at least 0.95 is required"]}


def _figures(labels: np.ndarray, answers: np.ndarray, names: list[str]) -> dict[str, Any]:
    pairs, counts = np.unique(np.stack([labels, answers]), axis=1, return_counts=True)
    right = int((labels == answers).sum())
    return {
        "right": right,
        "top1": right / len(labels),
        "top5": None,
        "per_class": [
            {
                "class": i,
                "name": name,
                "samples": int((labels == i).sum()),
                "right": int(((labels == i) & (answers == i)).sum()),
            }
            for i, name in enumerate(names)
        ],
        "confusion": [[*pair, count] for pair, count in zip(pairs.T.tolist(), counts.tolist(), strict=True)],
    }


def _image(seed: int) -> str:
    from PIL import Image

    out = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (28, 28, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(out, "png")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"


def by_class(task: str) -> dict[str, Any]:
    """Figures of classes whose answers are not right or wrong as a whole."""
    result = evaluation(2, 20)
    counted, figure = ("pixels", "iou") if task == "segmentation" else ("objects", "map")
    owl, cat = {"class": 3, "name": "owl", counted: 120}, {"class": 1, "name": "cat", counted: 0}
    result["task"] = task
    first, second, *_ = result["metrics"].values()
    for figures in result["metrics"].values():
        figures["per_class"] = [{**owl, figure: 0.5}]
    first["per_class"] = [{**owl, figure: 0.25}]
    second["per_class"] = [{**cat, figure: 0.0}, {**owl, figure: 0.5}]
    return result


def detections(classes: int = 12, samples: int = 2000, name: str = "class {}") -> dict[str, Any]:
    """Boxes of two arithmetics and of labels on images."""
    found = evaluation(classes, samples, name, 2)
    place, other = [0.1, 0.2, 0.3, 0.5], [0.5, 0.1, 0.45, 0.3]
    one, two = name.format(1), name.format(2)
    boxes = {
        "": [{"place": place, "class": one}, {"place": other, "class": two, "missing": ["litert"]}],
        "litert": [{"place": place, "class": one, "score": 0.75}],
        "xnnpack": [
            {"place": place, "class": one, "score": 0.75},
            {"place": other, "class": two, "score": 0.5, "missing": ["litert", ""]},
        ],
    }
    return _drawn(found, "detection", "map", {"boxes": boxes})


def masks(classes: int = 12, samples: int = 2000, name: str = "class {}") -> dict[str, Any]:
    """Masks of two arithmetics and of labels on images."""
    found = evaluation(classes, samples, name, 2)
    sides = {side: _image(seed) for seed, side in enumerate(("", "litert", "xnnpack"))}
    pairs = ["", "litert"], ["litert", "xnnpack"]
    drawn = {
        "masks": sides,
        "differ": [{"pair": pair, "mask": _image(9)} for pair in pairs],
        "legend": [{"name": name.format(i), "colour": f"#{i * 40:02x}9e73"} for i in range(3)],
    }
    return _drawn(found, "segmentation", "mean_iou", drawn)


def _drawn(found: dict[str, Any], task: str, headline: str, drawn: dict[str, Any]) -> dict[str, Any]:
    (pair,) = found["flips"]
    pair |= {"gained": None, "lost": None}
    image = {"image": _image(5), "what": "image", "size": [28, 28], **drawn}
    positions = [flip["position"] for flip in pair["samples"]]
    return {
        **found,
        "task": task,
        "headline": headline,
        "metrics": {name: {headline: 0.5} for name in found["numerics"]},
        "margins": None,
        "worst": {
            "numerics": "litert",
            "samples": [{"position": i, "id": f"{i}.jpg", "wrong": 1.0} for i in positions],
        },
        "thumbnails": {str(i): image for i in positions},
    }
