#!/usr/bin/env bash
# The corpus of ONNX models as people export them: built with PyTorch and the exporters' packages in an environment of their own
# (build/onnx_exporters), then run in ONNX Runtime and in bittrue. Takes a folder (default: build/onnx_corpus) and measure.py's
# options. With BITTRUE_CORPUS=smallest in the environment transformers are narrower: tests/data/onnx_corpus are files of those.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/onnx_corpus
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then folder=$1; shift; fi
if [ ! -e build/onnx_exporters/ready ]; then
    python -m venv build/onnx_exporters
    # Wheels without CUDA where their index can be reached, else those of the usual index, which are larger.
    build/onnx_exporters/bin/pip install -q --retries 0 --index-url https://download.pytorch.org/whl/cpu torch torchvision ||
        build/onnx_exporters/bin/pip install -q torch torchvision
    build/onnx_exporters/bin/pip install -q transformers timm onnxscript onnxconverter-common onnxsim onnxslim "onnx>=1.23" "onnxruntime>=1.31"
    touch build/onnx_exporters/ready
fi
build/onnx_exporters/bin/python tools/onnx_corpus/build.py "$folder"
exec python tools/onnx_corpus/measure.py "$folder" "$@"
