"""Devices with one planted fault each, in NumPy, independent of bittrue: how models are read, and every formula.

`RIGHT` has none and computes as LiteRT's reference kernels do.
"""

from .devices import PLANTED, RIGHT, Planted, PlantedDevice

__all__ = ["PLANTED", "RIGHT", "Planted", "PlantedDevice"]
