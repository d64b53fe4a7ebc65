"""Devices under test: adapters for everything that can run a model of one operator."""

from .base import STATUSES, Answer, Device
from .model import DeviceModel
from .refused import Refused

__all__ = ["STATUSES", "Answer", "Device", "DeviceModel", "Refused"]
