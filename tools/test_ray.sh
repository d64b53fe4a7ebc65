#!/usr/bin/env bash
# Tests of `bittrue evaluate --engine ray` on two nodes of this machine, with Ray in an environment of its own
# (build/ray, beside the packages that are here): it is too large for the extra `test`.
set -euo pipefail
cd "$(dirname "$0")/.."
python -m venv build/ray
build/ray/bin/python - "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'END'
import sys, sysconfig
with open(sysconfig.get_path("purelib") + "/beside.pth", "w") as file:
    file.write(sys.argv[1] + "\n")
END
build/ray/bin/pip install -q "ray[data]>=2.60"
exec build/ray/bin/python -m pytest -n 0 --deep tests/evaluation/test_ray.py "$@"
