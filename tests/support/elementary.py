"""Arguments at which the elementary functions of binary32 deserve a look."""

from __future__ import annotations

import numpy as np

# Where the functions change their way, and where they leave the range of binary32.
_BORDERS = """2.7755576e-17 1.8626451e-9 2.9802322e-8 0.00024414062 0.25 0.34657359 0.4375 0.6875 0.75 0.84375 1.0397207
1.1875 1.25 2.4375 2.857143 6 9 16.619047 18.714973 22 28 88.72168 88.722839 103.27893 103.97208 120 33554432
6.9388939e-18 3.7252903e-9 3.0517578e-5 0.00012207031 0.5 0.67434782 0.78539813 0.97500002 1 2 32768 89.415985
268435456"""
BORDERS = np.array(_BORDERS.split(), np.float32)
