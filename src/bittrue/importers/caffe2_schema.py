"""The protobuf messages of Caffe2 networks, as far as they are read. Source: caffe2/proto/caffe2.proto."""

from __future__ import annotations

from functools import cache
from typing import Any

from .protobuf import message_classes

_MESSAGES = {
    "Argument": """
        string name = 1, float f = 2, int64 i = 3, bytes s = 4
        repeated float floats = 5, repeated int64 ints = 6, repeated bytes strings = 7
        NetDef n = 8, repeated NetDef nets = 9
    """,
    "DeviceOption": "int32 device_type = 1",
    "OperatorDef": """
        repeated string input = 1, repeated string output = 2, string name = 3, string type = 4
        repeated Argument arg = 5, DeviceOption device_option = 6, string engine = 7
        repeated string control_input = 8, bool is_gradient_op = 9, string debug_info = 10
        string domain = 11, string op_version = 12
    """,
    "NetDef": """
        string name = 1, repeated OperatorDef op = 2, string type = 3, int32 num_workers = 4
        DeviceOption device_option = 5, repeated Argument arg = 6
        repeated string external_input = 7, repeated string external_output = 8
    """,
}


@cache
def messages() -> Any:
    """Message classes by name; UnsupportedError without the package `protobuf`."""
    return message_classes("caffe2", _MESSAGES)
