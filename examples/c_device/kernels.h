/* What a driver calls: integers in, integers out, parameters prepared once. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stdint.h>

typedef struct {
  double scale; /* a binary32 number */
  int32_t zero_point;
} operand;

typedef struct {
  int32_t low, high;
} clamp;

typedef struct {
  int32_t first_zero, second_zero, output_zero;
  int32_t first, second, output; /* Q31 multipliers */
  int first_exponent, second_exponent, output_exponent;
  clamp range;
} addition;

/* "none", "relu", "relu6" or "relu_n1_to_1" on stored values. */
clamp activation_range(const char *activation, double scale, int32_t zero_point);

addition prepare_addition(const operand *a, const operand *b, const operand *y, clamp range);
int8_t add(const addition *with, int8_t a, int8_t b);

/* y[rows, units] = x[rows, depth] * w[units, depth] + bias[units]; factors: one, or one per unit. */
void fully_connected(const int8_t *x, const int8_t *w, const int32_t *bias, int8_t *y, int64_t rows, int64_t depth,
                     int64_t units, int32_t x_zero, int32_t w_zero, int32_t y_zero, const double *factors,
                     int64_t factor_count, clamp range);

#endif
