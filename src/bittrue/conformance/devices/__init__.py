"""Devices under test: adapters for everything that can run a model of one operator."""

from .base import STATUSES, Answer, Device

__all__ = ["STATUSES", "Answer", "Device"]
