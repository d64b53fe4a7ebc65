/* Two int8 kernels with the arithmetic of LiteRT's reference kernels. */
#include "kernels.h"

#include <math.h>

/* Q31: real = multiplier * 2^(exponent - 31), multiplier rounded with ties away. */
typedef struct {
  int32_t multiplier;
  int exponent;
} factor;

static factor encode(double real) {
  factor found = {0, 0};
  int64_t whole = (int64_t)llround(frexp(real, &found.exponent) * 2147483648.0);
  if (whole == INT64_C(1) << 31) {
    whole /= 2;
    found.exponent++;
  }
  if (real == 0 || found.exponent < -31) {
    found.exponent = 0;
    return found;
  }
  found.multiplier = (int32_t)whole;
  return found;
}

/* x * factor for factors below 1, rounded twice: to 31 bits with ties up, then by 2^-exponent with ties away. */
static int32_t rescale(int32_t x, factor by) {
  int64_t high = ((int64_t)x * by.multiplier + (INT64_C(1) << 30)) >> 31;
  int right = -by.exponent;
  int64_t mask = (INT64_C(1) << right) - 1, rest = high & mask, half = (mask >> 1) + (high < 0);
  return (int32_t)((high >> right) + (rest > half));
}

static int8_t stored(int64_t value, const clamp *range) {
  return (int8_t)(value < range->low ? range->low : value > range->high ? range->high : value);
}

clamp activation_range(const char *activation, double scale, int32_t zero_point) {
  clamp range = {-128, 127};
  float low = 0, high = 0;
  int has_low = 1, has_high = 1;
  switch (activation[0] == 'n' ? 'n' : activation[4]) {
    case 'n': return range;                        /* none */
    case 0: has_high = 0; break;                   /* relu */
    case '6': high = 6; break;                     /* relu6 */
    default: low = -1, high = 1; break;            /* relu_n1_to_1 */
  }
  /* The quotient is one of binary32 numbers; ties away. */
  if (has_low) {
    long long bound = zero_point + llroundf(low / (float)scale);
    if (bound > range.low) range.low = (int32_t)bound;
  }
  if (has_high) {
    long long bound = zero_point + llroundf(high / (float)scale);
    if (bound < range.high) range.high = (int32_t)bound;
  }
  return range;
}

addition prepare_addition(const operand *a, const operand *b, const operand *y, clamp range) {
  addition found = {a->zero_point, b->zero_point, y->zero_point, 0, 0, 0, 0, 0, 0, range};
  double twice = (double)(float)(2 * fmaxf((float)a->scale, (float)b->scale));
  factor first = encode(a->scale / twice), second = encode(b->scale / twice);
  factor output = encode(twice / ((1 << 20) * y->scale));
  found.first = first.multiplier, found.first_exponent = first.exponent;
  found.second = second.multiplier, found.second_exponent = second.exponent;
  found.output = output.multiplier, found.output_exponent = output.exponent;
  return found;
}

int8_t add(const addition *with, int8_t a, int8_t b) {
  factor first = {with->first, with->first_exponent}, second = {with->second, with->second_exponent};
  factor output = {with->output, with->output_exponent};
  int32_t sum = rescale((a - with->first_zero) * (1 << 20), first) + rescale((b - with->second_zero) * (1 << 20), second);
  return stored((int64_t)rescale(sum, output) + with->output_zero, &with->range);
}

void fully_connected(const int8_t *x, const int8_t *w, const int32_t *bias, int8_t *y, int64_t rows, int64_t depth,
                     int64_t units, int32_t x_zero, int32_t w_zero, int32_t y_zero, const double *factors,
                     int64_t factor_count, clamp range) {
  for (int64_t row = 0; row < rows; row++)
    for (int64_t unit = 0; unit < units; unit++) {
      /* 32-bit sums wrap. */
      uint32_t sum = bias ? (uint32_t)bias[unit] : 0;
      for (int64_t k = 0; k < depth; k++)
        sum += (uint32_t)((x[row * depth + k] - x_zero) * (w[unit * depth + k] - w_zero));
      /* One binary64 product, ties away: what these kernels do since 2025. */
      double scaled = round((double)(int32_t)sum * factors[factor_count == 1 ? 0 : unit]);
      int32_t whole = scaled >= -2147483648.0 && scaled < 2147483648.0 ? (int32_t)scaled : INT32_MIN;
      y[row * units + unit] = stored((int64_t)whole + y_zero, &range);
    }
}
