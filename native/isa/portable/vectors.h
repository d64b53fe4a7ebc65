// Vectors of four binary32 numbers, and of two binary64 ones, in plain C++.
#pragma once

namespace bittrue::portable {

typedef float Vector __attribute__((vector_size(16)));
typedef double WideVector __attribute__((vector_size(16)));

// Rounded once. Without an instruction for it every number is a call: these calls then stand here alone.
#ifndef __FP_FAST_FMAF
[[gnu::noinline]]
#endif
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  for (int i = 0; i < 4; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
}
#ifndef __FP_FAST_FMA
[[gnu::noinline]]
#endif
inline WideVector multiply_add(WideVector a, WideVector b, WideVector c) {
  for (int i = 0; i < 2; ++i) c[i] = __builtin_fma(a[i], b[i], c[i]);
  return c;
}

}  // namespace bittrue::portable
