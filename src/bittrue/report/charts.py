"""What the charts of a comparison show, as compact JSON for the page's script."""

from __future__ import annotations

import base64
import math
from typing import Any

from .comparison import Report

# Bars of a channel chart: more than a screen has pixels are taken together, each bar showing the largest of its group.
_CHANNELS = 1024


def chart_data(report: Report, detailed: list[int]) -> dict[str, Any]:
    """Everything the script draws; ``any`` says whether there is something at all."""
    data: dict[str, Any] = {
        "names": [pair["a"] for pair in report.pairs],
        "layers": _layers(report) if report.differing else None,
        "first": report.first,
        "details": {str(i): _detail(report.pairs[i]) for i in detailed},
        "accumulators": _accumulators(report),
        "downstream": _downstream(report),
    }
    data["any"] = bool(report.differing or data["accumulators"] or data["downstream"])
    return data


def _layers(report: Report) -> dict[str, Any]:
    pairs = report.pairs
    return {
        "operator": [pair["source"] or pair["operator"] or "input" for pair in pairs],
        "differing": [pair["cumulative"]["differing"] for pair in pairs],
        "elements": [pair["cumulative"]["elements"] for pair in pairs],
        "largest": [_largest(pair["cumulative"]) for pair in pairs],
        "alone": [pair["isolated"]["differing"] if pair["isolated"] else None for pair in pairs],
        "aloneElements": [pair["isolated"]["elements"] if pair["isolated"] else None for pair in pairs],
        "aloneLargest": [_largest(pair["isolated"]) if pair["isolated"] else None for pair in pairs],
    }


def _largest(statistics: dict[str, Any]) -> float | None:
    return _finite(statistics["largest"]) if statistics["differing"] else 0


def _detail(pair: dict[str, Any]) -> dict[str, Any]:
    alone = pair["isolated"]
    same = alone == pair["cumulative"]
    ties = pair["verdict"]["ties"] if pair["verdict"] else []
    return {
        "real": pair["dtype_a"][:1] in ("f", "b") and pair["dtype_a"] != "bool",
        "own": _statistics(pair["cumulative"], pair["shape"]),
        "alone": "same" if same else _statistics(alone, pair["shape"]) if alone and alone["differing"] else None,
        "ties": _ties(ties),
    }


def _statistics(statistics: dict[str, Any], shape: list[int]) -> dict[str, Any] | None:
    if not statistics["differing"]:
        return None
    return {
        "histogram": _ordered(statistics["histogram"]),
        "channels": _channels(statistics["per_channel"]),
        "plane": _plane(statistics["plane"], shape),
    }


def _ties(ties: list[list[float]]) -> list[list[Any]]:
    """Distances by difference, each to four digits."""
    groups: dict[float, list[float]] = {}
    for distance, difference in ties:
        if math.isfinite(distance) and math.isfinite(difference):
            groups.setdefault(difference, []).append(float(f"{distance:.4g}"))
    return [[difference, groups[difference]] for difference in sorted(groups)]


def _ordered(histogram: dict[str, int]) -> list[list[Any]]:
    """Numbers by value, anything else behind them."""

    def key(name: str) -> tuple[int, float, str]:
        try:
            return 0, float(name), name
        except ValueError:
            return 1, 0.0, name

    return [[name.replace("-", "−"), histogram[name]] for name in sorted(histogram, key=key)]


def _channels(shares: list[float]) -> dict[str, Any] | None:
    if not shares:
        return None
    width = math.ceil(len(shares) / _CHANNELS)
    groups = [max(shares[i : i + width]) for i in range(0, len(shares), width)]
    return {"width": width, "shares": [float(f"{100 * share:.4g}") for share in groups]}


def _plane(plane: list[list[float]], shape: list[int]) -> dict[str, Any] | None:
    """An image of 1/255 of its largest share; what differs at all stays above zero."""
    if not plane or not plane[0]:
        return None
    top = max(map(max, plane)) or 1.0
    cells = bytes(min(math.ceil(255 * share / top), 255) if share else 0 for row in plane for share in row)
    rows, columns = len(plane), len(plane[0])
    height, width = _sizes(shape, rows, columns)
    return {
        "rows": rows,
        "columns": columns,
        "step": [height / rows, width / columns],
        "top": float(f"{100 * top:.4g}"),
        "cells": base64.b64encode(cells).decode(),
    }


def _sizes(shape: list[int], rows: int, columns: int) -> tuple[int, int]:
    """Height and width of the image: [N, H, W, C] or [N, C, H, W], whichever fits the plane."""
    if len(shape) == 4:
        for height, width in ((shape[1], shape[2]), (shape[2], shape[3])):
            if min(height, 64) == rows and min(width, 64) == columns:
                return height, width
    return rows, columns


def _accumulators(report: Report) -> dict[str, Any] | None:
    known = [(i, pair) for i, pair in enumerate(report.pairs) if pair["verdict"] and pair["verdict"]["accumulators"]]
    if not known:
        return None
    values = [pair["verdict"]["accumulators"] for _, pair in known]
    return {
        "position": [i for i, _ in known],
        "operator": [pair["source"] or pair["operator"] for _, pair in known],
        # As text: 64-bit numbers are more than JavaScript's.
        "low": [str(low) for low, _, _ in values],
        "high": [str(high) for _, high, _ in values],
        "bound": [str(bound) for _, _, bound in values],
        "reached": [float(max(abs(low), abs(high))) for low, high, _ in values],
        "proven": [float(abs(bound)) for _, _, bound in values],
    }


def _downstream(report: Report) -> list[dict[str, Any]]:
    """Tensors as positions; those that are no pair by their name."""
    positions = {pair["a"]: i for i, pair in enumerate(report.pairs)}
    return [
        {
            "tensor": entry["tensor"],
            "reached": [positions.get(name, name) for name, _ in entry["reached"]],
            "shares": [float(f"{100 * share:.4g}") for _, share in entry["reached"]],
        }
        for entry in report.result["amplification"]
    ]


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
