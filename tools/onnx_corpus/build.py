"""Write a corpus of quantized ONNX models: networks x exporters x quantizations, with random weights.

    python tools/onnx_corpus/build.py FOLDER [--only EXPRESSION] [--share N] [--seed WORD] [--exporters A,B]
        [--ways A,B]

writes FOLDER/NETWORK.EXPORTER.QUANTIZATION.onnx beside NETWORK.EXPORTER.json, which says what inputs the network takes,
and FOLDER/failed.json: what an exporter or quantizer could not do, with its words. Runs in an environment of its own
(tools/onnx_corpus.sh makes it); bittrue is not needed.
"""

import argparse
import contextlib
import copy
import dataclasses
import inspect
import io
import json
import logging
import multiprocessing
import os
import random
import re
import shutil
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
from networks import WIDTH, Network
from onnxruntime import quantization as q
from onnxruntime.quantization import matmul_nbits_quantizer as blocks
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers import float16, optimizer
from onnxruntime.transformers.onnx_model import OnnxModel
from samples import BRANCH, sample
from sight import NETWORKS

TIME_LIMIT = 600  # seconds for one network with everything made of it


def _examples(made: Network) -> tuple[torch.Tensor, ...]:
    values = sample(_described(made)["inputs"], made.free, np.random.default_rng(1))
    return tuple(torch.from_numpy(v) for v in values.values())


def _described(made: Network) -> dict[str, Any]:
    inputs = {name: {"shape": list(i.shape), "kind": i.kind, "high": i.high} for name, i in made.inputs.items()}
    return {"family": made.family, "free": made.free, "inputs": inputs}


def _torchscript(made: Network, path: Path, rng: random.Random) -> None:
    axes = {
        name: {i: d for i, d in enumerate(value.shape) if isinstance(d, str)} for name, value in made.inputs.items()
    }
    torch.onnx.export(
        made.module,
        _examples(made),
        str(path),
        dynamo=False,
        opset_version=rng.choice((13, 14, 16, 17, 17, 18, 20)),
        input_names=list(axes),
        dynamic_axes=axes,
    )


def _fixed(made: Network, path: Path, rng: random.Random) -> None:
    torch.onnx.export(
        made.module,
        _examples(made),
        str(path),
        dynamo=False,
        opset_version=rng.choice((13, 14, 15, 17)),
        input_names=list(made.inputs),
    )


def _dynamo(made: Network, path: Path, rng: random.Random) -> None:
    shapes = [{i: d for i, d in enumerate(value.shape) if isinstance(d, str)} for value in made.inputs.values()]
    kinds = [p.kind for p in inspect.signature(made.module.forward).parameters.values()]
    alone = len(kinds) - (inspect.Parameter.VAR_POSITIONAL in kinds)
    several = (tuple(shapes[alone:]),) if alone < len(kinds) else ()
    torch.onnx.export(
        made.module,
        _examples(made),
        str(path),
        dynamo=True,
        external_data=False,
        verbose=False,
        opset_version=rng.choice((None, 18, 20, 21, 22, 23, 24, 25)),
        input_names=list(made.inputs),
        dynamic_shapes=(*shapes[:alone], *several),
    )


class Narrow(torch.nn.Module):
    """A module in a narrow type between inputs and outputs of f32."""

    def __init__(self, module: torch.nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.module, self.dtype = copy.deepcopy(module).to(dtype), dtype

    def forward(self, *values: torch.Tensor) -> Any:
        found = self.module(*(v.to(self.dtype) if v.is_floating_point() else v for v in values))
        found = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(v.float() if v.is_floating_point() else v for v in found)


def _narrow(
    export: Callable[[Network, Path, random.Random], None], dtype: torch.dtype
) -> Callable[[Network, Path, random.Random], None]:
    return lambda made, path, rng: export(
        dataclasses.replace(made, module=Narrow(made.module, dtype).eval()), path, rng
    )


EXPORTERS: dict[str, Callable[[Network, Path, random.Random], None]] = {
    "torchscript": _torchscript,
    "fixed": _fixed,
    "dynamo": _dynamo,
    "torchscript_half": _narrow(_torchscript, torch.float16),
    "dynamo_half": _narrow(_dynamo, torch.float16),
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
    made = blocks.MatMulNBitsQuantizer(model, **options)
    made.process()
    model = made.model.model
    if not any(
        node.op_type in ("MatMulNBits", "DequantizeLinear", "GatherBlockQuantized") for node in model.graph.node
    ):
        raise ValueError("no matrix product to quantize")
    onnx.save(float16.convert_float_to_float16(model, keep_io_types=True) if half else model, str(target))


def _half(source: Path, target: Path, described: dict[str, Any], keep: bool) -> None:
    onnx.save(float16.convert_float_to_float16(onnx.load(str(source)), keep_io_types=keep), str(target))


def _half_converted(source: Path, target: Path, described: dict[str, Any], keep: bool) -> None:
    from onnxconverter_common import float16 as converter

    onnx.save(converter.convert_float_to_float16(onnx.load(str(source)), keep_io_types=keep), str(target))


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


def _after(first: Callable[..., None], then: Callable[..., None]) -> Callable[..., None]:
    """Both, one after the other."""

    def made(source: Path, target: Path, described: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            middle = Path(folder) / source.name
            first(source, middle, described)
            then(middle, target, described)

    return made


def _copied(source: Path, target: Path, described: dict[str, Any]) -> None:
    shutil.copy(source, target)


def _prepared(source: Path, target: Path, described: dict[str, Any]) -> None:
    quant_pre_process(str(source), str(target))


def _simplified(source: Path, target: Path, described: dict[str, Any]) -> None:
    import onnxsim

    onnx.save(onnxsim.simplify(onnx.load(str(source)))[0], str(target))


def _slimmed(source: Path, target: Path, described: dict[str, Any]) -> None:
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(str(source))), str(target))


# What the optimizer takes for networks whose names begin so; for others it is told "bert", its default.
KINDS = {
    "gpt2": ("gpt2", "gpt_neo", "cached_gpt2"),
    "t5": ("t5",),
    "vit": ("vit", "deit", "beit", "dinov2", "yolos", "masked_patches"),
    "swin": ("swin",),
    "clip": ("clip", "siglip"),
    "bart": ("whisper", "bart", "marian"),
    "conformer": ("conformer",),
    "phi": ("phi",),
    "unet": ("denoiser",),
    "vae": ("latent_decoder",),
}


def _fused(source: Path, target: Path, described: dict[str, Any], level: int = 0, half: bool = False) -> None:
    kind = next((k for k, names in KINDS.items() if source.name.startswith(names)), "bert")
    heads = {} if kind in ("unet", "vae") else {"num_heads": 4, "hidden_size": WIDTH}
    model = optimizer.optimize_model(str(source), model_type=kind, opt_level=level, **heads)
    if not any(node.domain == "com.microsoft" for node in model.model.graph.node):
        raise ValueError("the optimizer of transformers fused nothing")
    if half:
        model.convert_float_to_float16(keep_io_types=True)
    model.save_model_to_file(str(target))


def _fused_dynamic(source: Path, target: Path, described: dict[str, Any]) -> None:
    q.quantize_dynamic(str(source), str(target), extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def _saved(source: Path, target: Path, described: dict[str, Any], level: str = "EXTENDED") -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def _level(level: str) -> Callable[..., None]:
    return lambda *a: _saved(*a, level)


def _branches(source: Path, target: Path, described: dict[str, Any]) -> None:
    """As Optimum merges decoders: whole networks in both branches of an If, with their weights outside of it."""
    model = onnx.load(str(source))
    OnnxModel(model).topological_sort()
    graph = model.graph
    branch = onnx.helper.make_graph(list(graph.node), "branch", [], list(graph.output))
    branch.value_info.extend(graph.value_info)
    names = [output.name for output in graph.output]
    chosen = onnx.helper.make_node("If", [BRANCH], names, "merged", then_branch=branch, else_branch=branch)
    del graph.node[:], graph.value_info[:]
    graph.node.append(chosen)
    graph.input.append(onnx.helper.make_tensor_value_info(BRANCH, onnx.TensorProto.BOOL, [1]))
    onnx.save(model, str(target))


T, F = q.QuantType, q.QuantFormat
# Options that a user of `quantize_static` meets, by turns.
PAIRS = {"AddQDQPairToWeight": True, "QuantizeBias": False, "DedicatedQDQPair": True}
SPARSE = {"OpTypesToExcludeOutputQuantization": ["MatMul", "Gemm", "Conv", "Add"], "QDQKeepRemovableActivations": True}


def _qdq(*a: Any) -> None:
    _static(*a, F.QDQ, T.QUInt8, T.QInt8, per_channel=True)


def _symmetric(*a: Any) -> None:
    _nbits(*a, block_size=32, is_symmetric=True, accuracy_level=4)


QUANTIZATIONS: dict[str, Callable[..., None]] = {
    "float": _copied,
    "simplified": _simplified,
    "slimmed": _slimmed,
    "dynamic": _dynamic,
    "dynamic_s8": lambda *a: _dynamic(*a, weight_type=T.QInt8, per_channel=True),
    "dynamic_reduced": lambda *a: _dynamic(*a, weight_type=T.QInt8, reduce_range=True),
    "dynamic_channels": lambda *a: _dynamic(*a, per_channel=True, reduce_range=True),
    "dynamic_products": lambda *a: _dynamic(*a, op_types_to_quantize=["MatMul"], weight_type=T.QInt8),
    "dynamic_all": lambda *a: _dynamic(*a, extra_options={"MatMulConstBOnly": False, "EnableSubgraph": True}),
    "qdq": _qdq,
    "qdq_s8": lambda *a: _static(*a, F.QDQ, T.QInt8, T.QInt8, extra_options={"ActivationSymmetric": True}),
    "qdq_s8_channels": lambda *a: _static(*a, F.QDQ, T.QInt8, T.QInt8, per_channel=True),
    "qdq_u8": lambda *a: _static(*a, F.QDQ, T.QUInt8, T.QUInt8),
    "qdq_reduced": lambda *a: _static(*a, F.QDQ, T.QUInt8, T.QInt8, reduce_range=True),
    "qdq_percentile": lambda *a: _static(
        *a, F.QDQ, T.QUInt8, T.QInt8, per_channel=True, calibrate_method=q.CalibrationMethod.Percentile
    ),
    "qdq_pairs": lambda *a: _static(*a, F.QDQ, T.QUInt8, T.QInt8, extra_options=PAIRS),
    "qdq_sparse": lambda *a: _static(*a, F.QDQ, T.QUInt8, T.QInt8, per_channel=True, extra_options=SPARSE),
    "qdq_products": lambda *a: _static(
        *a, F.QDQ, T.QUInt8, T.QInt8, op_types_to_quantize=["MatMul", "Gemm", "Conv"], per_channel=True
    ),
    "qdq_prepared": _after(_prepared, _qdq),
    "qdq_simplified": _after(_simplified, _qdq),
    "qdq_16": lambda *a: _static(*a, F.QDQ, T.QUInt16, T.QInt8),
    "qdq_16_u8": lambda *a: _static(*a, F.QDQ, T.QUInt16, T.QUInt8, per_channel=True),
    "qdq_s16": lambda *a: _static(*a, F.QDQ, T.QInt16, T.QInt8),
    "qdq_16_16": lambda *a: _static(*a, F.QDQ, T.QInt16, T.QInt16, extra_options={"UseQDQContribOps": True}),
    "qdq_w4": lambda *a: _static(*a, F.QDQ, T.QUInt8, T.QInt4),
    "qdq_w4_unsigned": lambda *a: _static(*a, F.QDQ, T.QUInt8, T.QUInt4, per_channel=True),
    "qdq_w4_products": lambda *a: _static(
        *a, F.QDQ, T.QUInt8, T.QInt4, op_types_to_quantize=["MatMul"], extra_options=SPARSE
    ),
    "qdq_16_w4": lambda *a: _static(*a, F.QDQ, T.QUInt16, T.QInt4, per_channel=True),
    "qop": lambda *a: _static(*a, F.QOperator, T.QUInt8, T.QInt8),
    "qop_channels": lambda *a: _static(*a, F.QOperator, T.QUInt8, T.QInt8, per_channel=True),
    "qop_s8": lambda *a: _static(*a, F.QOperator, T.QInt8, T.QInt8),
    "qop_u8": lambda *a: _static(*a, F.QOperator, T.QUInt8, T.QUInt8),
    "nbits_0": lambda *a: _nbits(*a, block_size=32, is_symmetric=True, accuracy_level=0),
    "nbits_1_points": lambda *a: _nbits(*a, block_size=64, is_symmetric=False, accuracy_level=1),
    "nbits_4": _symmetric,
    "nbits_4_points": lambda *a: _nbits(*a, block_size=16, is_symmetric=False, accuracy_level=4),
    "nbits_4_long": lambda *a: _nbits(*a, block_size=128, is_symmetric=False, accuracy_level=4),
    "nbits_4_longest": lambda *a: _nbits(*a, block_size=256, is_symmetric=True, accuracy_level=4),
    "nbits_8": lambda *a: _nbits(*a, bits=8, block_size=32, is_symmetric=True, accuracy_level=4),
    "nbits_8_points": lambda *a: _nbits(*a, bits=8, block_size=64, is_symmetric=False, accuracy_level=4),
    "nbits_8_0": lambda *a: _nbits(*a, bits=8, block_size=16, is_symmetric=False, accuracy_level=0),
    "nbits_gather": lambda *a: _nbits(
        *a, block_size=32, is_symmetric=False, accuracy_level=4, op_types_to_quantize=("MatMul", "Gather")
    ),
    "nbits_hqq": lambda *a: _nbits(*a, algo_config=blocks.HQQWeightOnlyQuantConfig(block_size=32, bits=4)),
    "nbits_rtn": lambda *a: _nbits(*a, algo_config=blocks.RTNWeightOnlyQuantConfig(), block_size=32, accuracy_level=4),
    "nbits_mixed": lambda *a: _nbits(
        *a, algo_config=blocks.KQuantWeightOnlyQuantConfig(), block_size=32, accuracy_level=4
    ),
    "nbits_qdq": lambda *a: _nbits(*a, block_size=32, is_symmetric=False, accuracy_level=4, quant_format=F.QDQ),
    "nbits_qdq_8": lambda *a: _nbits(*a, bits=8, block_size=32, is_symmetric=True, quant_format=F.QDQ),
    "nbits_qdq_half": lambda *a: _nbits(*a, half=True, block_size=32, is_symmetric=False, quant_format=F.QDQ),
    "nbits_qdq_short": lambda *a: _nbits(*a, block_size=16, is_symmetric=True, quant_format=F.QDQ),
    "nbits_8_longest": lambda *a: _nbits(*a, bits=8, block_size=256, is_symmetric=False, accuracy_level=4),
    "nbits_8_1": lambda *a: _nbits(*a, bits=8, block_size=128, is_symmetric=True, accuracy_level=1),
    "nbits_0_points": lambda *a: _nbits(*a, block_size=16, is_symmetric=False, accuracy_level=0),
    "nbits_slimmed": _after(_symmetric, _slimmed),
    "nbits_half": lambda *a: _nbits(*a, half=True, block_size=32, is_symmetric=True, accuracy_level=4),
    "half": lambda *a: _half(*a, True),
    "half_everywhere": lambda *a: _half(*a, False),
    "half_converted": lambda *a: _half_converted(*a, True),
    "half_converted_everywhere": lambda *a: _half_converted(*a, False),
    "half_simplified": _after(lambda *a: _half(*a, True), _simplified),
    "half_dynamic": _half_dynamic,
    "fused": _after(_fused, _fused_dynamic),
    "fused_float": _fused,
    "fused_more": lambda *a: _fused(*a, level=2),
    "fused_half": lambda *a: _fused(*a, half=True),
    "fused_qdq": _after(_fused, _qdq),
    "fused_nbits": _after(_fused, _symmetric),
    "fused_saved": _after(_fused, _level("ALL")),
    "saved": _after(_dynamic, _saved),
    "saved_dynamic": _after(_dynamic, _level("ALL")),
    "saved_simplified": _after(_simplified, _level("BASIC")),
    "saved_basic": _after(_qdq, _level("BASIC")),
    "saved_extended": _after(_qdq, _saved),
    "saved_layout": _after(_qdq, _level("LAYOUT")),
    "saved_all": _after(_qdq, _level("ALL")),
    "saved_float": _level("ALL"),
    "saved_nbits": _after(_symmetric, _level("ALL")),
    "branches": _branches,
    "branches_dynamic": _after(_dynamic, _branches),
    "branches_dynamic_all": _after(_branches, lambda *a: _dynamic(*a, extra_options={"EnableSubgraph": True})),
    "branches_qdq": _after(_qdq, _branches),
    "branches_nbits": _after(_symmetric, _branches),
    "branches_fused": _after(_fused, _branches),
    "branches_half": _after(lambda *a: _half(*a, True), _branches),
    "branches_saved": _after(_branches, _level("ALL")),
    "saved_half": _after(lambda *a: _half(*a, True), _saved),
    "saved_half_all": _after(lambda *a: _half_converted(*a, False), _level("ALL")),
}

# What quantizers and tools make of exports in a narrow type: names of QUANTIZATIONS begin so.
NARROW = (
    "float",
    "simplified",
    "slimmed",
    "nbits_0",
    "nbits_4",
    "nbits_8",
    "nbits_gather",
    "nbits_slimmed",
    "nbits_qdq",
)
NARROW += (
    "branches_nbits",
    "branches_fused",
    "fused_float",
    "fused_more",
    "fused_saved",
    "saved_simplified",
    "saved_float",
    "saved_nbits",
)


def build(
    name: str, folder: Path, share: int, exporters: tuple[str, ...], chosen: tuple[str, ...], seed: str
) -> list[dict[str, str]]:
    """Export a network, and quantize each export in the `chosen` ways, else in `share` drawn by its name and `seed`.

    Returns what failed.
    """
    torch.manual_seed(0)
    made, failed = NETWORKS[name](), []
    made.module.eval()
    for exporter in exporters:
        stem = f"{name}.{exporter}"
        rng = random.Random(stem + seed)
        described = _described(made) | {"fixed": exporter == "fixed"}
        with tempfile.TemporaryDirectory() as scratch:
            source = Path(scratch) / f"{stem}.onnx"
            try:
                EXPORTERS[exporter](made, source, rng)
                session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
            except Exception as error:
                failed.append({"model": stem, "error": f"{type(error).__name__}: {error}"[:300]})
                continue
            names = [i.name for i in session.get_inputs()]
            described["inputs"] = {n: d for n, d in described["inputs"].items() if n in names}
            (folder / f"{stem}.json").write_text(json.dumps(described, indent=1))
            kinds = [k for k in QUANTIZATIONS if exporter in ("torchscript", "fixed", "dynamo") or k.startswith(NARROW)]
            for kind in chosen or rng.sample(kinds, min(share, len(kinds))):
                target = folder / f"{stem}.{kind}.onnx"
                try:
                    QUANTIZATIONS[kind](source, target, described)
                except Exception as error:
                    target.unlink(missing_ok=True)
                    failed.append({"model": target.name, "error": f"{type(error).__name__}: {error}"[:300]})
    return failed


def _quietly(name: str, pipe: Any, *arguments: Any) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    onnxruntime.set_default_logger_severity(4)
    os.chdir(tempfile.mkdtemp())
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            pipe.send(build(name, *arguments))
    except Exception:
        pipe.send([{"model": name, "error": traceback.format_exc()[-300:]}])


def main() -> None:
    """Build every network in a process of its own, since an exporter may crash or hang."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="networks in whose name this regular expression is found")
    parser.add_argument(
        "--share", type=int, default=3, help="quantizations of each export, drawn by its name and the seed"
    )
    parser.add_argument("--seed", default="", help="any word: another one draws other operator sets and quantizations")
    parser.add_argument("--exporters", default=",".join(EXPORTERS), help="which of them, separated by commas")
    parser.add_argument("--ways", default="", help="quantizations by name, separated by commas, in place of drawn ones")
    arguments = parser.parse_args()
    exporters = tuple(arguments.exporters.split(","))
    ways = tuple(arguments.ways.split(",")) if arguments.ways else ()
    if unknown := [w for w in (*exporters, *ways) if w not in EXPORTERS and w not in QUANTIZATIONS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join((*EXPORTERS, *QUANTIZATIONS))}")
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in (n for n in NETWORKS if re.search(arguments.only, n)):
        if list(folder.glob(f"{name}.*.json")):
            continue
        ours, theirs = multiprocessing.Pipe(False)
        process = multiprocessing.get_context("fork").Process(
            target=_quietly,
            args=(name, theirs, folder, arguments.share, exporters, ways, arguments.seed),
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
