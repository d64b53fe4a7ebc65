"""Write a corpus of quantized ONNX models: networks x exporters x quantizations, with random weights.

    python tools/onnx_corpus/build.py FOLDER [--only PART] [--all]

writes FOLDER/NETWORK.EXPORTER.QUANTIZATION.onnx beside NETWORK.EXPORTER.json, which says what inputs the network takes,
and FOLDER/failed.json: what an exporter or quantizer could not do, with its words. Runs in an environment of its own
(tools/onnx_corpus.sh makes it); bittrue is not needed.
"""

import argparse
import contextlib
import io
import json
import logging
import multiprocessing
import os
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime
import torch
from networks import NETWORKS, WIDTH, Network
from onnxruntime import quantization as q
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers import float16, optimizer
from samples import sample

TIME_LIMIT = 600  # seconds for one network with everything made of it


def _examples(made: Network) -> tuple[torch.Tensor, ...]:
    values = sample(_described(made)["inputs"], made.free, np.random.default_rng(1))
    return tuple(torch.from_numpy(v) for v in values.values())


def _described(made: Network) -> dict[str, Any]:
    inputs = {name: {"shape": list(i.shape), "kind": i.kind, "high": i.high} for name, i in made.inputs.items()}
    return {"family": made.family, "free": made.free, "inputs": inputs}


def _torchscript(made: Network, path: Path) -> None:
    axes = {
        name: {i: d for i, d in enumerate(value.shape) if isinstance(d, str)} for name, value in made.inputs.items()
    }
    torch.onnx.export(
        made.module,
        _examples(made),
        str(path),
        dynamo=False,
        opset_version=17,
        input_names=list(axes),
        dynamic_axes=axes,
    )


def _fixed(made: Network, path: Path) -> None:
    torch.onnx.export(
        made.module, _examples(made), str(path), dynamo=False, opset_version=14, input_names=list(made.inputs)
    )


def _dynamo(made: Network, path: Path) -> None:
    named = {d: torch.export.Dim(d) for value in made.inputs.values() for d in value.shape if isinstance(d, str)}
    shapes = [{i: named[d] for i, d in enumerate(value.shape) if isinstance(d, str)} for value in made.inputs.values()]
    several = any(p.kind is p.VAR_POSITIONAL for p in _parameters(made.module))
    torch.onnx.export(
        made.module,
        _examples(made),
        str(path),
        dynamo=True,
        external_data=False,
        verbose=False,
        input_names=list(made.inputs),
        dynamic_shapes=(tuple(shapes),) if several else tuple(shapes),
    )


def _parameters(module: torch.nn.Module) -> Any:
    import inspect

    return inspect.signature(module.forward).parameters.values()


EXPORTERS: dict[str, Callable[[Network, Path], None]] = {
    "torchscript": _torchscript,
    "fixed": _fixed,
    "dynamo": _dynamo,
}


class Calibration(q.CalibrationDataReader):
    """Four random samples."""

    def __init__(self, described: dict[str, Any]) -> None:
        rng = np.random.default_rng(2)
        self.samples: Iterator[dict[str, np.ndarray]] = iter(
            [sample(described["inputs"], described["free"], rng) for _ in range(4)]
        )

    def get_next(self) -> Any:
        return next(self.samples, None)


def _static(
    source: Path, target: Path, described: dict[str, Any], form: Any, activations: Any, weights: Any, **options: Any
) -> None:
    q.quantize_static(
        str(source),
        str(target),
        Calibration(described),
        quant_format=form,
        activation_type=activations,
        weight_type=weights,
        **options,
    )


def _dynamic(source: Path, target: Path, described: dict[str, Any], **options: Any) -> None:
    q.quantize_dynamic(str(source), str(target), **options)


def _nbits(source: Path, target: Path, described: dict[str, Any], half: bool = False, **options: Any) -> None:
    model = onnx.load(str(source))
    if options.get("quant_format") == F.QDQ:  # blocks came to DequantizeLinear with operator set 21
        model = onnx.version_converter.convert_version(model, 21)
    made = MatMulNBitsQuantizer(model, **options)
    made.process()
    model = made.model.model
    if not any(
        node.op_type in ("MatMulNBits", "DequantizeLinear", "GatherBlockQuantized") for node in model.graph.node
    ):
        raise ValueError("no matrix product to quantize")
    onnx.save(float16.convert_float_to_float16(model, keep_io_types=True) if half else model, str(target))


def _half(source: Path, target: Path, described: dict[str, Any], keep: bool) -> None:
    onnx.save(float16.convert_float_to_float16(onnx.load(str(source)), keep_io_types=keep), str(target))


def _half_dynamic(source: Path, target: Path, described: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        middle = Path(folder) / "dynamic.onnx"
        q.quantize_dynamic(str(source), str(middle))
        blocked = [
            *float16.DEFAULT_OP_BLOCK_LIST,
            "DynamicQuantizeLinear",
            "MatMulInteger",
            "ConvInteger",
            "DynamicQuantizeLSTM",
        ]
        onnx.save(
            float16.convert_float_to_float16(onnx.load(str(middle)), keep_io_types=True, op_block_list=blocked),
            str(target),
        )


KINDS = {
    "bert": ("bert", "roberta", "electra", "mpnet", "camembert", "xlm", "distil"),
    "gpt2": ("gpt2",),
    "vit": ("vit", "deit", "beit"),
    "bart": ("whisper",),
}


def _fused(source: Path, target: Path, described: dict[str, Any]) -> None:
    kind = next((k for k, names in KINDS.items() if source.name.startswith(names)), None)
    if kind is None:
        raise ValueError("the optimizer of transformers has no kind for it")
    model = optimizer.optimize_model(str(source), model_type=kind, num_heads=4, hidden_size=WIDTH, opt_level=0)
    with tempfile.TemporaryDirectory() as folder:
        middle = Path(folder) / "fused.onnx"
        model.save_model_to_file(str(middle))
        q.quantize_dynamic(str(middle), str(target), extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def _saved(source: Path, target: Path, described: dict[str, Any]) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(target)
    with tempfile.TemporaryDirectory() as folder:
        middle = Path(folder) / "dynamic.onnx"
        q.quantize_dynamic(str(source), str(middle))
        onnxruntime.InferenceSession(str(middle), options, providers=["CPUExecutionProvider"])


T, F = q.QuantType, q.QuantFormat
QUANTIZATIONS: dict[str, Callable[..., None]] = {
    "dynamic": _dynamic,
    "dynamic_s8": lambda *a: _dynamic(*a, weight_type=T.QInt8, per_channel=True),
    "qdq": lambda *a: _static(*a, F.QDQ, T.QUInt8, T.QInt8, per_channel=True),
    "qdq_s8": lambda *a: _static(*a, F.QDQ, T.QInt8, T.QInt8, extra_options={"ActivationSymmetric": True}),
    "qdq_16": lambda *a: _static(*a, F.QDQ, T.QUInt16, T.QInt8),
    "qdq_w4": lambda *a: _static(*a, F.QDQ, T.QUInt8, T.QInt4),
    "qop": lambda *a: _static(*a, F.QOperator, T.QUInt8, T.QInt8),
    "nbits_0": lambda *a: _nbits(*a, block_size=32, is_symmetric=True, accuracy_level=0),
    "nbits_4": lambda *a: _nbits(*a, block_size=32, is_symmetric=True, accuracy_level=4),
    "nbits_4_points": lambda *a: _nbits(*a, block_size=16, is_symmetric=False, accuracy_level=4),
    "nbits_qdq": lambda *a: _nbits(*a, block_size=32, is_symmetric=False, accuracy_level=4, quant_format=F.QDQ),
    "nbits_half": lambda *a: _nbits(*a, half=True, block_size=32, is_symmetric=True, accuracy_level=4),
    "half": lambda *a: _half(*a, True),
    "half_everywhere": lambda *a: _half(*a, False),
    "half_dynamic": _half_dynamic,
    "fused": _fused,
    "saved": _saved,
}


def build(name: str, folder: Path, share: int) -> list[dict[str, str]]:
    """Export and quantize one network, with every `share`-th quantization; returns what failed, each with its words."""
    torch.manual_seed(0)
    made, failed = NETWORKS[name](), []
    made.module.eval()
    for turn, (exporter, export) in enumerate(EXPORTERS.items(), list(NETWORKS).index(name)):
        stem = f"{name}.{exporter}"
        described = _described(made) | {"fixed": exporter == "fixed"}
        with tempfile.TemporaryDirectory() as scratch:
            source = Path(scratch) / f"{stem}.onnx"
            try:
                export(made, source)
                onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
            except Exception as error:
                failed.append({"model": stem, "error": f"{type(error).__name__}: {error}"[:300]})
                continue
            names = [
                i.name
                for i in onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"]).get_inputs()
            ]
            described["inputs"] = {n: d for n, d in described["inputs"].items() if n in names}
            (folder / f"{stem}.json").write_text(json.dumps(described, indent=1))
            for kind in list(QUANTIZATIONS)[turn % share :: share]:
                target = folder / f"{stem}.{kind}.onnx"
                try:
                    QUANTIZATIONS[kind](source, target, described)
                except Exception as error:
                    target.unlink(missing_ok=True)
                    failed.append({"model": target.name, "error": f"{type(error).__name__}: {error}"[:300]})
    return failed


def _quietly(name: str, folder: Path, share: int, pipe: Any) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    onnxruntime.set_default_logger_severity(4)
    os.chdir(tempfile.mkdtemp())
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            pipe.send(build(name, folder, share))
    except Exception:
        pipe.send([{"model": name, "error": traceback.format_exc()[-300:]}])


def main() -> None:
    """Build every network in a process of its own, since an exporter may crash or hang."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="networks whose name contains this")
    parser.add_argument(
        "--all", action="store_true", help="every quantization of every export (default: each third, in turn)"
    )
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in (n for n in NETWORKS if arguments.only in n):
        if list(folder.glob(f"{name}.*.json")):
            continue
        ours, theirs = multiprocessing.Pipe(False)
        process = multiprocessing.get_context("fork").Process(
            target=_quietly, args=(name, folder, 1 if arguments.all else 3, theirs)
        )
        process.start()
        theirs.close()
        found: list[dict[str, str]] = [{"model": name, "error": f"took more than {TIME_LIMIT} s"}]
        if ours.poll(TIME_LIMIT):
            try:
                found = ours.recv()
            except EOFError:
                found = [{"model": name, "error": "the process died"}]
        process.kill()
        process.join()
        failed += found
        made = len(list(folder.glob(f"{name}.*.onnx")))
        print(f"{name}: {made} models, {len(found)} failed", flush=True)
    (folder / "failed.json").write_text(json.dumps(failed, indent=1))
    print(f"{len(list(folder.glob('*.onnx')))} models in {folder}")


if __name__ == "__main__":
    main()
