"""MXNet 1.9.1 as a contender of bench/systems.py; runs in a Python that has `mxnet` and nothing of bittrue.

    python mxnet_peer.py FOLDER NAME [SIZE]

NAME is a network of gluon's model zoo. It gets random weights, is calibrated and quantized by MXNet's own quantizer
(fused oneDNN nodes) and saved in FOLDER. Then every line of standard input is a number of runs; the answer is their
seconds.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update({"OMP_NUM_THREADS": "1", "MXNET_CPU_WORKER_NTHREADS": "1", "MXNET_SUBGRAPH_BACKEND": "NONE"})

# Before the system: see there.
from answering import answer  # noqa: I001
import mxnet as mx
import numpy as np
from mxnet.contrib.quantization import quantize_model
from mxnet.gluon.model_zoo import vision


def build(folder: Path, name: str, size: int) -> tuple[Any, np.ndarray]:
    """The quantized network, bound to arrays, and its input; both are in `folder` as well."""
    rng = np.random.default_rng(0)
    mx.random.seed(0)
    shape = (1, 3, size, size)
    network = vision.get_model(name, pretrained=False)
    network.initialize(mx.init.Xavier(magnitude=2.0))
    network.hybridize()
    network(mx.nd.zeros(shape))
    network.export(str(folder / "real"))
    symbol, weights, states = mx.model.load_checkpoint(str(folder / "real"), 0)
    # Untrained normalizations would do nothing.
    for key, value in weights.items():
        if key.endswith("gamma"):
            weights[key] = mx.nd.array(rng.uniform(0.6, 1.2, value.shape))
        if key.endswith(("beta", "bias")):
            weights[key] = mx.nd.array(rng.standard_normal(value.shape) * 0.2)
    for key, value in states.items():
        variance = key.endswith("var")
        states[key] = mx.nd.array(
            rng.uniform(0.5, 1.5, value.shape) if variance else 0.1 * rng.standard_normal(value.shape)
        )
    images = rng.standard_normal((4, *shape[1:])).astype(np.float32)
    symbol, weights, states = quantize_model(
        sym=symbol.get_backend_symbol("MKLDNN_QUANTIZE"),
        arg_params=weights,
        aux_params=states,
        ctx=mx.cpu(),
        excluded_sym_names=[],
        calib_mode="naive",
        calib_data=mx.io.NDArrayIter(data=images, batch_size=1),
        num_calib_examples=4,
        quantized_dtype="auto",
        logger=logging.getLogger("quantization"),
    )
    symbol = symbol.get_backend_symbol("MKLDNN_QUANTIZE")
    mx.model.save_checkpoint(str(folder / "network"), 0, symbol, weights, states)
    image = rng.standard_normal(shape).astype(np.float32)
    given = {"data": mx.nd.array(image), **weights, **states}
    bound = symbol.bind(
        mx.cpu(),
        args={key: given[key] for key in symbol.list_arguments()},
        aux_states={key: given[key] for key in symbol.list_auxiliary_states()},
        grad_req="null",
    )
    return bound, image


def main() -> None:
    """Build, describe, then run as often as asked."""
    folder, name = Path(sys.argv[1]), sys.argv[2]
    bound, image = build(folder, name, int(sys.argv[3]) if len(sys.argv) > 3 else 224)

    def run() -> np.ndarray:
        bound.arg_dict["data"][:] = image
        found: np.ndarray = bound.forward(is_train=False)[0].asnumpy()
        return found

    # Its kernels follow the processor.
    numerics = "mxnet" if "vnni" in Path("/proc/cpuinfo").read_text() else "mxnet-avx2"
    described = {"title": f"MXNet {mx.__version__}", "model": str(folder / "network-symbol.json"), "numerics": numerics}
    answer(folder, image, run, described)


if __name__ == "__main__":
    main()
