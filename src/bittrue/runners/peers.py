"""Other runtimes, as they are installed here. None is a dependency: a missing one says how to install it."""

from .base import Peer
from .litert import LITERT, XNNPACK
from .onnxruntime import ONNXRUNTIME
from .openvino import OPENVINO

PEERS: dict[str, Peer] = {peer.name: peer for peer in (LITERT, XNNPACK, ONNXRUNTIME, OPENVINO)}
