// The hot cores: what every instruction set may implement in its own way. docs/cores.md says what a folder of them must
// keep to.
//
// Storage: every 8-bit tensor in native memory is unsigned. A plan's s8 value q is kept as q + 128, with its zero point
// moved by 128, so cores know one 8-bit activation type. Weights stay signed.
//
// Memory: cores never read or write outside of the rows they are given (except where a comment allows it), never
// allocate in `run`, and are immutable after they are made: several threads may run one core at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "rules/requantize.h"

namespace bittrue {

// acc[r][n] = bias[n] + row_terms[r] + sum over segments s and bytes d of rows[s][r][d] * weights[n][s * depth + d],
// modulo 2^32 as a signed number; out[r][n] = requantize(acc[r][n]).
// With `pairs`, products of bytes 2i and 2i + 1 of a segment are added up first, and this sum is clamped to 16 bits.
// Zero points of activations are already folded into `bias`, those of weights into `row_terms`.
struct MatmulSpec {
  int64_t columns = 0;
  int64_t segments = 1;
  int64_t depth = 0;                // bytes per segment; a multiple of 4
  const int8_t* weights = nullptr;  // [columns][segments * depth]
  bool by_rows = false;             // of one segment: [depth][columns]
  const int32_t* bias = nullptr;    // [columns]
  bool row_terms = false;
  rules::Requantize requantize;  // the stored type is 8-bit
  bool sums = false;             // acc itself is the result: 32-bit numbers in place of the bytes of `out`
  bool pairs = false;            // a factory gives null for what it does not add up so
  // More than 0: rows are windows of 3 x 3 neighbours, [line][pixel][byte], of which a line has so many; the core may then be
  // one with `scratch`. A map has so many lines.
  int64_t window_line = 0, window_lines = 0;
};

// Rows that lie evenly: row r is position first + r of a grid of `width` positions per line. Line y, position x begins
// at base + y * line_step + x * row_step, every further segment segment_step bytes after the one before it.
struct MatmulGrid {
  const uint8_t* base = nullptr;
  int64_t first = 0, width = 1;
  int64_t row_step = 0, line_step = 0, segment_step = 0;
};

struct MatmulRows {
  const uint8_t* const* rows = nullptr;  // [segments][capacity]: where row r's segment s begins
  int64_t capacity = 0;
  int64_t count = 0;                   // rows in use, any number up to capacity
  const int32_t* row_terms = nullptr;  // [count] when the spec says so
  uint8_t* out = nullptr;
  int64_t out_stride = 0;            // bytes from one output row to the next
  const MatmulGrid* grid = nullptr;  // instead of `rows`, only for a core that `takes_grids`
  uint8_t* scratch = nullptr;
};

class Matmul {
 public:
  virtual ~Matmul();
  // Columns per panel: panels are the unit in which columns can be shared out among threads.
  virtual int64_t panels() const = 0;
  // The first column of a panel; of panels(), how many columns there are.
  virtual int64_t first_column(int64_t panel) const = 0;
  // Rows that one tile holds: counts that are multiples of it run best.
  virtual int64_t tile_rows() const = 0;
  // Whether MatmulRows::grid may be used.
  virtual bool takes_grids() const = 0;
  // Bytes of scratch memory (64-byte aligned) that one call needs. Where there are some, rows are whole lines of a grid of
  // windows (MatmulSpec::window_line), one step from pixel to pixel and one from line to line; a segment is a line of three
  // pixels, and `first` a multiple of tile_rows().
  virtual int64_t scratch() const;
  virtual void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const = 0;
};

// Depthwise convolution of one image whose channels are all filtered once:
// acc[y][x][c] = bias[c] + sum over taps i, j of (in[y*stride_h + i*dilation_h][x*stride_w + j*dilation_w - pad_left][c])
// * weights[i][j][c], where positions left or right of the image read `zero_point`.
// With `pairs`, products of taps 2k and 2k + 1, counted row by row, are added up first, and this sum is clamped to 16 bits;
// and weight_zero_point times the sum of what the taps read is taken off.
struct DepthwiseSpec {
  int64_t channels = 0;
  int64_t taps_h = 0, taps_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t width = 0, out_width = 0, pad_left = 0;
  uint8_t zero_point = 0;
  const int16_t* weights =
      nullptr;  // [taps_h][taps_w][channels], weight minus its zero point, within [-255, 255]; those of pairs as they are, [-128, 127]
  bool pairs = false;             // a factory gives null for what it does not add up so
  int32_t weight_zero_point = 0;  // of pairs
  const int32_t* bias = nullptr;  // [channels], the activation's zero point folded in
  rules::Requantize requantize;   // the stored type is 8-bit
};

class Depthwise {
 public:
  virtual ~Depthwise();
  // Bytes of scratch memory (64-byte aligned) that one call needs.
  virtual int64_t scratch() const = 0;
  // Output rows that one call produces best.
  virtual int64_t preferred_rows() const = 0;
  // `rows` holds (count - 1) * stride_h + (taps_h - 1) * dilation_h + 1 pointers to input rows of width * channels bytes;
  // rows above or below the image point to a row filled with the zero point. `out` holds `count` output rows.
  virtual void run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const = 0;
};

// out = requantize((A(a) + sign * B(b))), element by element over 8-bit operands, where A and B align both inputs:
// A(q) = rescale(align, (q - first_zero_point) << left, first), left being at most 23; sums are modulo 2^32 as signed
// numbers.
struct AddSpec {
  int32_t first_zero_point = 0, second_zero_point = 0;  // of the stored (unsigned) operands
  int left = 20;
  rules::RescaleRule align = rules::RescaleRule::q31_two_step_up_away;
  rules::Multiplier first{}, second{};
  bool subtract = false;
  rules::Requantize requantize;
};

// out = requantize((a - first_zero_point) * (b - second_zero_point)), element by element over 8-bit operands.
struct MulSpec {
  int32_t first_zero_point = 0, second_zero_point = 0;  // of the stored operands, within [-32000, 32000]
  rules::Requantize requantize;                         // one multiplier
};

// out = round_even(s * factor + zero_point) saturated to the type, s = a * first_scale + (b * second_scale + addend), element
// by element over 8-bit operands; all multiply-adds are rounded once to binary32, a and b are the plan's own values.
// Everything that does not fit 32 bits, and NaN, counts as -2^31, as x86 converts it.
struct FusedSumSpec {
  float first_scale = 0, second_scale = 0, addend = 0;
  float factor = 1, zero_point = 0;
  bool is_signed = false;  // all three types are s8, kept as q + 128
};

// out = round_even((a - first_zero_point) * (b - second_zero_point) * factor + zero_point), saturated as above, element by
// element over 8-bit operands in the plan's own values; each operation is rounded to binary32, the first product is exact.
// Zero points are integers within [-255, 255].
struct ScaledProductSpec {
  float first_zero_point = 0, second_zero_point = 0, factor = 0, zero_point = 0;
  bool is_signed = false;  // all three types are s8, kept as q + 128
};

class Elementwise {
 public:
  virtual ~Elementwise();
  virtual void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const = 0;
};

// binary16 numbers in 16 bits to binary32 and back, as arithmetic/narrow_float.h says; false if one was a signalling NaN,
// or when narrowed any NaN.
using WidenHalves = bool (*)(const uint16_t* in, float* out, int64_t count);
using NarrowToHalves = bool (*)(const float* in, uint16_t* out, int64_t count);

// out[i] = max over k of taps[k][i], then clamped to [low, high], which are bytes (low > high gives high).
using MaxRows = void (*)(const uint8_t* const* taps, int64_t taps_count, uint8_t* out, int64_t count, int low,
                         int high);
// sums[i] = sum over k of taps[k][i]; taps_count <= 2^23 keeps it below 2^31.
using SumRows = void (*)(const uint8_t* const* taps, int64_t taps_count, int32_t* sums, int64_t count);
// out[i] = clamp(((s + n) * factor >> 16) >> shift, low, high), s the sum over k < taps of taps[k][i], n the summand, or the
// other one where s < below; all numbers have 16 bits. There are at most 128 taps, and low <= high.
struct AverageSpec {
  uint16_t taps = 0, summand = 0, summand_below = 0, below = 0, factor = 0, shift = 0;
  uint8_t low = 0, high = 255;
};
using AverageRows = void (*)(const AverageSpec& spec, const uint8_t* const* taps, uint8_t* out, int64_t count);
// The same for a line of windows, each a column after the one before it: pixels x - before up to `taps` further on of
// every row, as far as they are within `columns`; every window holds one at least. averages[n - 1] is that of n pixels.
struct AverageLineSpec {
  static constexpr int64_t kMostTaps = 7;
  int64_t rows = 0, columns = 0, channels = 0;
  int64_t out = 0, taps = 0, before = 0;
};
using AverageLine = void (*)(const AverageLineSpec& spec, const AverageSpec* averages, const uint8_t* const* rows,
                             uint8_t* out);
// terms[r] = factor * (sum over segments s and bytes d < bytes of rows[s][r][d]), modulo 2^32: what the zero point of
// weights adds to every accumulator of a row. rows is [segments][capacity].
using RowTerms = void (*)(const uint8_t* const* rows, int64_t capacity, int64_t segments, int64_t bytes, int64_t count,
                          int32_t factor, int32_t* terms);
// out[i] = table[in[i]]; in may equal out.
using Lookup = void (*)(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count);
// out[r][c] = requantize(acc[r][c], column c), for rows that lie one behind the other.
using RequantizeRows = void (*)(const rules::Requantize& requantize, const int32_t* acc, int64_t rows, uint8_t* out,
                                int64_t columns);
// out[i] = round_even(clamp(x, low, high)) + zero_point, x = in[i] / scale, or in[i] * scale + addend in one rounding
// (`multiplies`); NaN counts as `low`. low and high are integers such that all results are bytes.
struct QuantizeSpec {
  float scale = 1, low = 0, high = 255;
  int32_t zero_point = 0;
  bool multiplies = false;
  float addend = 0;
};
using QuantizeReals = void (*)(const QuantizeSpec& spec, const float* in, uint8_t* out, int64_t count);
// out[i] = clamp(round_even((in[i] - 128) * factors[i] + summands[i]), -128, 127) + 128, product and sum rounded to binary32.
// Numbers are finite.
using ScaleBytes = void (*)(const uint8_t* in, const float* factors, const float* summands, uint8_t* out,
                            int64_t count);
// out[i] = clamp(clamp(rescale(first[i])) + rescale(second[i])) in 16 bits, the sum modulo 2^32, by the rule
// q31_two_step_up_away; multipliers within [0, 2^31), exponents within [-31, 31].
using GateSums = void (*)(const rules::Multiplier& by_first, const rules::Multiplier& by_second, const int32_t* first,
                          const int32_t* second, int16_t* out, int64_t count);
// v = (f32(acc[i]) + bias[i]) * factors[i], each rounded to binary32, or `start` where that is more;
// out[i] = clamp(round_even(other[i] * factor + v), low, high), the sum rounded once to binary32. Both tensors of bytes are
// the plan's own values less or plus `flip`: `other` less other_flip, `out` plus out_flip, modulo 256. Numbers are finite,
// low and high integers of a byte.
struct LayerSumSpec {
  float factor = 0, start = 0, low = 0, high = 0;
  int32_t other_flip = 0, out_flip = 0;
};
using LayerSums = void (*)(const LayerSumSpec& spec, const int32_t* acc, const float* bias, const float* factors,
                           const uint8_t* other, uint8_t* out, int64_t count);
// out[i] = the function of arithmetic/fused_polynomials, or x / 2 times one more than erf(x / sqrt 2) or tanh (rule
// binary32_fused_polynomials of gelu), or (by_quotient) that of rules/recurrence, at in[i]; out may be in.
enum class RealFunction : uint8_t { exp, logistic, tanh, erf, gelu, gelu_tanh, logistic_by_quotient, tanh_by_quotient };
using RealFunctionCore = void (*)(RealFunction function, const float* in, float* out, int64_t count);
// out[i] = the function of x[i], which has the numbers a and b, every operation rounded: log, softplus, elu, celu and selu
// (of a, scaled by b) as groups of four of arithmetic/rational have them; raised to a, then lowered to b (limit); a x + b
// within [0, 1] (hard_sigmoid), of 1/6 and 1/2 times x (hard_swish); times a below zero, or also at zero and NaN; the inverse
// circular functions like the first ones. out may be x.
struct RealLoop {
  enum Function : uint8_t {
    log,
    softplus,
    elu,
    celu,
    selu,
    square_root,
    inverse_square_root,
    round_even,
    round_down,
    round_up,
    limit,
    hard_sigmoid,
    hard_swish,
    scaled_below_zero,
    scaled_by_sign_bit,
    scaled_unless_above_zero,
    arc_cosine,
    arc_sine,
    arc_tangent
  };
  Function function = limit;
  float a = 0, b = 0;
};
using RealLoopCore = void (*)(const RealLoop& loop, const float* x, float* out, int64_t count);
// out[i] = what the operation makes of first[i] and second[i], or of a single number (`one_first`, `one_second`): integers
// modulo 2^bits, comparisons bytes of 0 and 1. The larger and smaller one is the first number where that is NaN, or where
// neither is and it is beyond the second one, or equal (`.._or_first`); else the second. False where a sum, difference,
// product or quotient is NaN. Quotients are of real numbers, or of 32 bits: toward zero, 2^31 saturates, no divisor is 0. A
// power of binary32 numbers is that of arithmetic/elementary: where all first ones are positive and finite and all second ones
// finite; else false, and nothing is written.
struct PairLoop {
  enum Operation : uint8_t {
    sum,
    difference,
    product,
    quotient,
    larger,
    larger_or_first,
    smaller,
    smaller_or_first,
    equal,
    not_equal,
    greater,
    greater_equal,
    power
  };
  enum Number : uint8_t { u8, s16, s32, s64, f32, f64 };
  Operation operation = sum;
  Number number = f32;
  bool one_first = false, one_second = false;
};
using PairLoopCore = bool (*)(const PairLoop& loop, const void* first, const void* second, void* out, int64_t count);
// Softmax by the rules binary32_polynomial_16_lanes, _8_lanes and _4_lanes; count is at least 1.
struct SoftmaxRows {
  // The largest of all; where one is NaN, any.
  float (*largest)(const float* in, int64_t count) = nullptr;
  // out[i] = exp(in[i] - largest), `largest` no less than in[i], and their sum in lanes; some NaN from NaN. out may be in,
  // or null.
  float (*powers)(const float* in, float* out, int64_t count, float largest, int lanes) = nullptr;
  // out[i] = e[i] * f32(1 / sum of e) of these powers. False where the sum is NaN. out may be in.
  bool (*row)(const float* in, float* out, int64_t count, int lanes) = nullptr;
};
// Rows of `count` numbers, one behind the other, less their mean and over their deviation, by the rule binary32_lanes:
// lanes (`fused` to the end) give fma((x - mean) * (1 / deviation), scale, bias), the other orders
// (x - mean) / deviation * scale + bias; without a bias the product alone. Rows that are not centred have the mean 0.
enum class NormalizeOrder : uint8_t { lanes, fused_lanes, running, one_by_one };
struct NormalizeSpec {
  NormalizeOrder order = NormalizeOrder::lanes;
  bool centred = true;
  float epsilon = 0;
  int64_t count = 0;             // at least 8 for lanes
  const float* scale = nullptr;  // [count]
  const float* bias = nullptr;   // [count], or null
};
// means and inverses (1 / deviation) may be null. False where one of a row's two is no number. `out` does not overlap `in`.
using NormalizeRows = bool (*)(const NormalizeSpec& spec, const float* in, int64_t rows, float* out, float* means,
                               float* inverses);
// Runs the fastest multiply-add instruction `rounds` times over registers; returns how many 8-bit multiply-adds it did.
using PeakMultiplyAdds = int64_t (*)(int64_t rounds);

// Where a panel begins, and where its sums go.
struct RealSpot {
  int64_t panel = 0, out = 0;
};
inline constexpr RealSpot kOnlySpot;

// sums[r][n] = the sum over segments s and elements k < depth of rows[s][r][k] * panel[s * depth + k][n], for n < width:
// binary32, from +0 on, one term after the other in this order, each product and each sum rounded. A segment whose first
// row is null is left out for all rows.
template <class T>
struct RowsOf {
  const T* const* rows = nullptr;  // [segments][capacity]
  int64_t capacity = 0, count = 0, segments = 1, depth = 0;
  T* sums = nullptr;
  int64_t stride = 0;  // floats from one row of sums to the next
  // Of run_in_parts:
  const RealSpot* spots = &kOnlySpot;  // panels that all rows meet
  int64_t spot_count = 1;
  int64_t part = 1;           // terms of a sum
  int64_t gap = 0;            // numbers between a row's terms of one sum and those of the next
  T factor = 1;               // of such a sum
  const T* begins = nullptr;  // what the results begin with, row by row; null: what `sums` holds
  int64_t begins_stride = 0;
  const T* biases = nullptr;  // [count], added to the results at the end; null: none
  T low = -__builtin_inff(),
    high = __builtin_inff();  // then results are raised to the one and lowered to the other
  // Of run_placed:
  const int64_t* places = nullptr;          // [depth]
  int64_t from = 0, to = int64_t{1} << 62;  // terms of every sum that are added; the others are zeros
};

using RealRows = RowsOf<float>;

// Begins that change nothing, with a stride of 0.
template <class T>
struct Nothing {
  T numbers[64] = {};
  constexpr Nothing() {
    for (T& number : numbers) number = -0.0f;
  }
};
template <class T>
inline constexpr Nothing<T> kNothing;

template <class T>
struct MatmulOf {
  int64_t lanes = 1;    // widths are multiples of it
  int64_t vectors = 1;  // of `lanes` that a panel has, at most
  using Run = bool (*)(const RowsOf<T>& rows, const T* panel, int64_t width);
  Run run = nullptr;
  // The same from what `sums` holds on, each product and its sum rounded once.
  Run run_fused = nullptr;
  // Sums of `part` terms (the last one may be shorter) of one segment, each from +0 on like those of run_fused. One after the
  // other, their products with `factor` are added to what the results begin with, rounded once; then the bias, and the
  // limits. False where a result is no finite number; the others are always true.
  Run run_in_parts = nullptr;
  // The same with a panel whose numbers of term k begin at panel + places[k], of at most kPlacedVectors vectors: these have
  // the highest tiles.
  static constexpr int64_t kPlacedVectors = 2;
  Run run_placed = nullptr;
};
using RealMatmul = MatmulOf<float>;
// The same of binary64 numbers: run_in_parts alone.
using WideMatmul = MatmulOf<double>;

// sums[r][n] = the sum over k < depth of rows[r][k] * column n's byte k, modulo 2^32, for n < width: unsigned bytes times
// signed ones. A panel is [depth / 4][width][4]; depth is a multiple of 4.
struct ByteRows {
  const uint8_t* rows = nullptr;
  int64_t row_step = 0, count = 0, depth = 0;
  int32_t* sums = nullptr;
  int64_t stride = 0;  // numbers from one row of sums to the next
};

struct ByteProduct {
  int64_t lanes = 1;    // widths are multiples of it
  int64_t vectors = 1;  // of `lanes` that a panel has, at most
  void (*run)(const ByteRows& rows, const int8_t* panel, int64_t width) = nullptr;
  // The same with columns where they lie: byte k of column n is matrix[k * step + n], less 128. Depths and widths, up to
  // `lanes` * `vectors`, are any; rows may be read to a multiple of 4. Null: there is none.
  void (*run_in_place)(const ByteRows& rows, const uint8_t* matrix, int64_t step, int64_t width) = nullptr;
};

// The same, but the sum of products 2i and 2i + 1 is clamped to 16 bits before it is added.
struct PairProduct : ByteProduct {};

// Products of rows of signed bytes with 16 columns of unsigned numbers of 4 or 8 bits, with a scale per block on both sides.
// A step t multiplies 8 bytes in each of 4 lanes j, exactly: for all rows r and columns n,
//   sums[r][j][n] = fma(f32(dot), f32(row scale * column scale), sums[r][j][n]) in binary32, scales of block
//   step_blocks[2 t + j / 2], dot = the sum over d < 8 of rows[r][32 t + 8 j + d] * number d of column n in step t and lane j.
// Numbers are [steps][4 lanes] of 64 bytes, four of every column, whose low half-bytes are numbers 0 to 3 and whose high
// ones are 4 to 7 (run_4); or of twice 64 bytes (run_8). Numbers of 4 bits stay below 16, sums of products within 2^24.
// Steps come in parts. A part's sums begin with +0 or with what slot `from` keeps, and become slot `to`, or are added to it
// (slot + sums), or with the spare slot first (slot + (spare + sums)). Slots are four lanes each.
struct BlockPart {
  enum class Then : uint8_t { keep, add, add_with_spare };
  static constexpr int kSpare = 4, kSlots = 5;
  int64_t steps = 0;
  int from = -1, to = 0;
  Then then = Then::keep;
};

// The first `lanes` / 4 slots become one number per row and column: of each four lanes ((a + b) + c) + d, and those added by
// halves (i and i + count / 2, until one is left), or all lanes by halves; `crossed` lanes count in the order 0, 2, 1, 3.
// Then the bias and the sum over blocks b of fma(row_sums[r][b], moved[b][n], ...) from +0 on are added. With
// `lane_sums`, of single rows of half-bytes alone, what belongs to step t and lane j of four is less
// lane_sums[t][j] * moved[b][n] instead, exactly.
struct BlockRows {
  const int8_t* rows = nullptr;
  int64_t row_step = 0, count = 0;
  const float *scales = nullptr, *row_sums = nullptr;  // [count][blocks]
  const float* lane_sums = nullptr;                    // [steps][4]
  int64_t blocks = 0;
  const int32_t* step_blocks = nullptr;  // [steps][2]
  const BlockPart* parts = nullptr;
  int64_t part_count = 0;
  int lanes = 16;  // or 8
  bool crossed = false;
  int64_t by_halves = 0;        // rows of which all lanes are added by halves
  int64_t by_fours = 16;        // columns of the others that are added by fours; the rest by halves
  const float* bias = nullptr;  // [16], or null
  float* out = nullptr;         // [count], out_step apart, of which `used` columns are written
  int64_t out_step = 0, used = 16;
};

struct BlockProduct {
  // Scales and `moved` are [blocks][16]. False where a result is no finite number.
  using Run = bool (*)(const BlockRows& rows, const uint8_t* numbers, const float* scales, const float* moved);
  Run run_4 = nullptr, run_8 = nullptr;
  // `count` (16 or 8) lanes of 16 columns become one as above, the first `by_fours` columns by fours; the halves of 8
  // lanes are added up as (0 + 1) + (2 + 3).
  void (*fold)(const float* lanes, int count, int64_t by_fours, float* out) = nullptr;
  // Real numbers of 16 columns, (q - point) * scale in binary32, q of 4 bits: [terms / 2][16] bytes, whose low half-bytes
  // are the even terms'. Scales and points are [blocks][16], a block is `length` terms, a multiple of 16.
  // A row times them: sums[k % lanes][n] = fma(row[k], number k of column n, sums[k % lanes][n]), one term after the
  // other; lanes are 16 or 8.
  void (*run_row)(const float* row, int64_t terms, int64_t length, int lanes, const uint8_t* numbers,
                  const float* scales, const float* points, float* sums) = nullptr;
  // The numbers themselves, of one block: out[k][n].
  void (*unpack)(int64_t terms, const uint8_t* numbers, const float* scales, const float* points, float* out) = nullptr;
};

// out[c] = the sum over taps t of inputs[t][c] * weights[t][c], like RealRows: in order, from +0 on (real_taps), or from
// what `out` holds on, each product and its sum rounded once (real_taps_fused).
using RealTaps = void (*)(const float* const* inputs, const float* const* weights, int64_t count, int64_t channels,
                          float* out);
// out[y * out_step + i] = the sum over taps t of inputs[t][y * step + i] * weights[t] from +0 on, in order, each product and its
// sum rounded once; then the bias is added, and results are raised to `low` and lowered to `high`: for y < lines and i < count.
// Lines of fewer than 16 numbers have as many that may be read. False where a result, or one of those, is no finite number.
struct RealPlaneRows {
  const float* const* inputs = nullptr;
  const float* weights = nullptr;
  int64_t taps = 0, lines = 1, step = 0, count = 0;
  float bias = -0.0f, low = -__builtin_inff(), high = __builtin_inff();
  float* out = nullptr;
  int64_t out_step = 0;
};
using RealPlane = bool (*)(const RealPlaneRows& rows);
// Windows over sixteen channels side by side: output i of line y is out[y * out_step + 16 i + c], for channels c, its tap t
// image[y * step + i * stride + offsets[t] + c]. Taps are joined in order: products with weights[16 t + c] are added from
// +0 on, each product and its sum rounded once, then a bias is added and results are raised to `low` and lowered to `high`;
// taps alone are added to `start`; or the largest stays, the first of equal ones, and `start` where none is more.
// False where a result of products is no finite number. Steps are multiples of 16.
struct RealLaneRows {
  static constexpr int64_t kChannels = 16;
  enum class Join : uint8_t { products, sums, largest };
  Join join = Join::products;
  const float* image = nullptr;
  const int64_t* offsets = nullptr;
  const float *weights = nullptr, *biases = nullptr;  // [taps][16], [16]; of products alone
  int64_t taps = 0, lines = 1, count = 0, step = 0, stride = kChannels;
  float start = 0.0f, low = -__builtin_inff(), high = __builtin_inff();
  float* out = nullptr;
  int64_t out_step = 0;
};
using RealLanes = bool (*)(const RealLaneRows& rows);

// target[i * target_step + j] = source[j * source_step + i] for i < across and j < along.
using TransposeReals = void (*)(const float* source, int64_t source_step, float* target, int64_t target_step,
                                int64_t across, int64_t along);
// rows[k * width + n] becomes fma(factors[k], rows[k * width + n], first[k] * second[n]), that product rounded, or without factors
// fma(first[k], second[n], rows[k * width + n]), for k < count and n < width, a multiple of 16.
using AddOuter = void (*)(float* rows, int64_t count, int64_t width, const float* factors, const float* first,
                          const float* second);
// Windows of an image times filters side by side: sums[places[r].sums + n] becomes the sum over taps t and terms k < taps[t].terms
// of image[places[r].image + taps[t].image + k] * panel[(taps[t].panel + k) * width + n] for r < count and n < width: from +0 on,
// in order, each product and its sum rounded once. Where sums are `begun`, it is added to what lies there. With
// biases [width] these are added then, and results are raised to `low` and lowered to `high`: false where one is no finite number.
struct RealWindows {
  struct Place {
    int64_t image = 0, sums = 0;
  };
  struct Taps {
    int64_t image = 0, panel = 0, terms = 0;
  };
  const float* image = nullptr;
  const Place* places = nullptr;
  const Taps* taps = nullptr;
  int64_t count = 0, tap_count = 0;
  float* sums = nullptr;
  bool begun = false;
  const float* biases = nullptr;
  float low = -__builtin_inff(), high = __builtin_inff();
};
struct WindowProduct {
  static constexpr int64_t kRows = 6;  // windows that are worked on together, at most
  int64_t lanes = 1;
  int64_t vectors = 1;  // widths are 1, 2, ... `vectors` times `lanes`, powers of two
  bool (*run)(const RealWindows& windows, const float* panel, int64_t width) = nullptr;
};

// The cores of one instruction set; what is null is taken from the next simpler set.
struct Cores {
  const char* isa = "";
  // How many times as long products of bytes take as by the fastest set, about.
  int64_t byte_times = 1;
// NOLINTNEXTLINE(bugprone-macro-parentheses): types have no parentheses.
#define BITTRUE_FACTORY(name, Core, Spec) std::unique_ptr<Core> (*name)(const Spec&) = nullptr;
#define BITTRUE_FUNCTION(name, Type) Type name = nullptr;
#define BITTRUE_OBJECT(name, Type) const Type* name = nullptr;
#include "isa/core_list.inc"
};

}  // namespace bittrue
