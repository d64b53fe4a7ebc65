// Every core of every instruction set of this processor against the scalar twins, on seeded random and extreme data:
//   bittrue_cores_test [--seed N] [--scale PERCENT] [--isa NAME] [--threads N]
// One line per (instruction set, core) with the number of cases; a line that starts with FAIL for each core that
// differs; exit status 1 if any does. --threads runs every case on so many threads at once (for ThreadSanitizer).
#include <algorithm>
#include <memory>

#include "core/core_set.h"
#include "core/thread_pool.h"
#include "cores_cases.h"
#include "cores_codes.h"
#include "cores_real.h"
#include "cores_report.h"
#include "isa/portable/scalar_requantize.h"
#include "rules/average.h"

namespace bittrue::test {
namespace {

struct MatmulCase {
  int64_t rows, columns, segments, depth, window_line = 0;
  int64_t magnitudes = 0;  // more than 0: the sum of those of every column's weights, all of one sign; inputs are 255
};

void check_matmul(Context& context, const MatmulCase& c, rules::RescaleRule rule, rules::StoreRule store) {
  Random& random = context.random;
  const int64_t total = c.segments * c.depth;
  Exact<int8_t> weights(c.columns * total);
  const int64_t kind = random.between(0, 6);
  for (int64_t i = 0; i < weights.count(); ++i) {
    const int8_t ends[] = {-128, 127};
    // Mostly small ones are put into an order in which pairs fit 16 bits; of one sign by columns, they are as large as fits.
    const auto any = static_cast<int8_t>(random.next()), small = static_cast<int8_t>(any / 4);
    weights[i] = kind == 0                         ? ends[c.rows % 2]
                 : kind == 1                       ? random.pick(ends)
                 : kind == 2 && !random.one_in(30) ? small
                 : kind == 3                       ? static_cast<int8_t>((any & 63) * (i / total % 2 * 2 - 1))
                                                   : any;
  }
  for (int64_t n = 0; n < c.columns && c.magnitudes > 0; ++n) {
    int64_t left = c.magnitudes;
    for (int64_t k = 0; k < total; ++k) {
      const int64_t part = std::min<int64_t>(left, n % 2 == 0 ? 127 : 128);
      weights[n * total + k] = static_cast<int8_t>(n % 2 == 0 ? part : -part);
      left -= part;
    }
  }
  MatmulSpec spec;
  spec.row_terms = random.one_in(c.window_line > 0 ? 8 : 2);
  spec.sums = random.one_in(4);
  spec.pairs = random.one_in(c.window_line > 0 ? 8 : 3);
  const bool wild = random.one_in(6);
  const int64_t reach = wild ? INT32_MAX : 20000;
  Exact<int32_t> bias(c.columns), terms(c.rows);
  for (int64_t n = 0; n < c.columns; ++n) bias[n] = static_cast<int32_t>(random.between(-reach - wild, reach));
  // A column whose bias is far from all others', as that of dead channels is.
  const int64_t dead = !wild && random.one_in(4) ? random.between(0, c.columns - 1) : -1;
  if (dead >= 0) {
    spec.row_terms = spec.sums = spec.pairs = false;
    const int64_t most = INT32_MAX - 32768 * total;
    bias[dead] = static_cast<int32_t>(random.between(-most, most));
    if (random.one_in(2)) std::memset(&weights[dead * total], 0, static_cast<size_t>(total));
  }
  for (int64_t r = 0; r < c.rows; ++r) terms[r] = static_cast<int32_t>(random.between(-reach - wild, reach));
  double bound = 0;
  for (int64_t n = 0; n < c.columns; ++n) {
    double sum = std::abs(static_cast<double>(bias[n])) + (spec.row_terms ? static_cast<double>(reach) : 0);
    for (int64_t k = 0; k < total; ++k) sum += 255.0 * std::abs(weights[n * total + k]);
    bound = std::max(bound, sum);
  }
  spec.columns = c.columns;
  spec.segments = c.segments;
  spec.depth = c.depth;
  spec.window_line = c.window_line;
  if (c.window_line > 0) spec.window_lines = c.rows / c.window_line;
  spec.weights = weights.data();
  spec.by_rows = c.segments == 1 && random.one_in(2);
  Exact<int8_t> by_rows(c.columns * total);
  for (int64_t i = 0; i < by_rows.count(); ++i) by_rows[i] = weights[i % c.columns * total + i / c.columns];
  if (spec.by_rows) spec.weights = by_rows.data();
  spec.bias = bias.data();
  spec.requantize =
      some_requantize(random, rule, store, random.one_in(3) ? 1 : c.columns,
                      kind <= 1 || wild ? bound : 10000 * std::sqrt(static_cast<double>(total) + 1), bound);
  if (dead >= 0 && spec.requantize.multipliers.size() > 1) {
    spec.requantize.multipliers[dead] = some_multiplier(random, rule, INT32_MAX, false);
  }
  const std::unique_ptr<Matmul> core = context.cores.matmul(spec);

  const int64_t capacity = c.rows + random.between(0, 2);
  std::vector<Exact<uint8_t>> memory;
  std::vector<const uint8_t*> pointers(c.segments * capacity, nullptr);
  // Rows in a grid overlap, may lie closer than a line is long, and end with the memory.
  MatmulGrid grid;
  const bool windows = core->scratch() != 0, in_grid = windows || (core->takes_grids() && random.one_in(2));
  if (windows) {
    grid.width = c.window_line;
    grid.first = random.between(0, 2) * core->tile_rows();
    grid.row_step = c.depth / 3;
    grid.line_step = grid.segment_step = (grid.width + 2) * grid.row_step + random.between(0, 30);
  } else if (in_grid) {
    grid.width = random.between(1, random.one_in(2) ? 20 : 60);
    grid.first = random.between(0, 70);
    grid.row_step = random.between(1, 40);
    grid.line_step =
        random.one_in(3) ? random.between(0, 10) : (grid.width - 1) * grid.row_step + random.between(0, 30);
    grid.segment_step = random.between(0, random.one_in(3) ? 4 : 600);
  }
  if (in_grid) {
    const auto offset = [&](int64_t r) {
      const int64_t position = grid.first + r;
      return position / grid.width * grid.line_step + position % grid.width * grid.row_step;
    };
    int64_t last = 0;
    for (int64_t r = 0; r < c.rows; ++r) last = std::max(last, offset(r));
    memory.emplace_back(last + (c.segments - 1) * grid.segment_step + c.depth);
    fill_bytes(random, memory.back());
    if (c.magnitudes > 0) std::memset(memory.back().data(), 255, memory.back().count());
    grid.base = memory.back().data();
    for (int64_t s = 0; s < c.segments; ++s) {
      for (int64_t r = 0; r < c.rows; ++r) pointers[s * capacity + r] = grid.base + offset(r) + s * grid.segment_step;
    }
  }
  for (int64_t s = 0; s < c.segments && !in_grid; ++s) {
    for (int64_t r = 0; r < c.rows; ++r) {
      memory.emplace_back(c.depth);
      fill_bytes(random, memory.back());
      pointers[s * capacity + r] = memory.back().data();
    }
  }
  const int64_t item = spec.sums ? 4 : 1;
  std::vector<uint8_t> expected(c.rows * c.columns * item);
  for (int64_t r = 0; r < c.rows; ++r) {
    for (int64_t n = 0; n < c.columns; ++n) {
      uint32_t acc = static_cast<uint32_t>(bias[n]) + (spec.row_terms ? static_cast<uint32_t>(terms[r]) : 0);
      for (int64_t k = 0, pair = 0; k < total; ++k) {
        const int32_t x = pointers[k / c.depth * capacity + r][k % c.depth];
        const int32_t product = x * weights[n * total + k];
        pair = k % 2 == 0 ? product : std::clamp<int64_t>(pair + product, -32768, 32767);
        if (!spec.pairs) acc += static_cast<uint32_t>(product);
        if (spec.pairs && k % 2 != 0) acc += static_cast<uint32_t>(pair);
      }
      if (spec.sums) {
        std::memcpy(&expected[(r * c.columns + n) * 4], &acc, 4);
        continue;
      }
      expected[r * c.columns + n] =
          static_cast<uint8_t>(rules::requantize(spec.requantize, static_cast<int32_t>(acc), static_cast<size_t>(n)));
    }
  }
  // Panels one by one or together; the bytes between rows must stay.
  const int64_t gap = random.between(0, 3), width = c.columns * item, stride = width + gap, panels = core->panels();
  const bool together = random.one_in(2);
  std::vector<Exact<uint8_t>> outs;
  for (int k = 0; k < context.options.threads; ++k) {
    outs.emplace_back((c.rows - 1) * stride + width);
    std::memset(outs.back().data(), 0xa5, outs.back().count());
  }
  on_threads(context.options.threads, [&](int k) {
    MatmulRows rows;
    rows.rows = in_grid ? nullptr : pointers.data();
    rows.grid = in_grid ? &grid : nullptr;
    rows.capacity = capacity;
    rows.count = c.rows;
    rows.row_terms = spec.row_terms ? terms.data() : nullptr;
    rows.out = outs[k].data();
    rows.out_stride = stride;
    rows.scratch = static_cast<uint8_t*>(std::aligned_alloc(64, (core->scratch() + 64) / 64 * 64));
    for (int64_t panel = 0; panel < panels; panel += together ? panels : 1) {
      core->run(rows, panel, together ? panels : panel + 1);
    }
    std::free(rows.scratch);
  });
  char text[120];
  std::snprintf(text, sizeof text,
                "%lld x %lld x %lld*%lld by rows %d grid %d row terms %d sums %d pairs %d weights %d wild %d; ",
                static_cast<long long>(c.rows), static_cast<long long>(c.columns), static_cast<long long>(c.segments),
                static_cast<long long>(c.depth), spec.by_rows, in_grid, spec.row_terms, spec.sums, spec.pairs,
                static_cast<int>(kind), wild);
  const std::string description = text + describe(spec.requantize);
  for (const Exact<uint8_t>& out : outs) {
    std::vector<uint8_t> whole(out.count(), 0xa5);
    for (int64_t r = 0; r < c.rows; ++r) std::memcpy(&whole[r * stride], &expected[r * width], width);
    context.report.expect_equal(out.data(), whole.data(), out.count(), description);
  }
}

void check_matmul(Context& context) {
  Random& random = context.random;
  // Around every width and height that a tile may have.
  const int64_t columns[] = {1,  2,  3,  5,  7,  8,  9,  13, 15, 16, 17, 23, 24,
                             25, 31, 32, 33, 47, 48, 49, 63, 64, 65, 97, 131};
  const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 17, 19, 25, 31, 65, 130};
  const int64_t depths[] = {4, 8, 12, 16, 20, 28, 32, 36, 60, 64, 68, 92, 128, 148};
  for (const rules::RescaleRule rule : kRescaleRules) {
    for (const rules::StoreRule store : kStoreRules) {
      for (int64_t i = 0; i < context.rounds(90); ++i) {
        const int64_t segments = random.one_in(2) ? 1 : random.between(2, 5);
        check_matmul(context, {random.pick(rows), random.pick(columns), segments, random.pick(depths)}, rule, store);
      }
      // Windows of 3 x 3 pixels, larger maps of them, and sums up to what tiles have room for: 2^25 / 255 is 131586.0.
      for (int64_t i = 0; i < context.rounds(20); ++i) {
        const int64_t line = random.between(1, 13), lines = random.between(1, 12), channels = random.between(3, 21) * 4;
        check_matmul(context, {line * lines, random.pick(columns), 3, 3 * channels, line}, rule, store);
      }
      for (int64_t i = 0; i < context.rounds(6); ++i) {
        const int64_t wide[] = {32, 36, 48, 64, 76, 96, 100, 120};
        const int64_t line = random.between(11, 20), lines = random.between(11, 20);
        check_matmul(context, {line * lines, random.between(12, 70), 3, 3 * random.pick(wide), line}, rule, store);
      }
      check_matmul(context, {12 * 16, 17, 3, 3 * 116, 16, random.between(131584, 131588)}, rule, store);
      const int64_t deep[] = {2044, 2048, 2052, 4100, 6148};
      check_matmul(context, {random.between(1, 7), random.between(1, 20), random.between(1, 2), random.pick(deep)},
                   rule, store);
    }
  }
}

// depthwise --------------------------------------------------------------------------------------------------------

void check_depthwise(Context& context, rules::RescaleRule rule, rules::StoreRule store, bool squares) {
  Random& random = context.random;
  const int64_t channels[] = {1,  2,  3,  5,  7,  8,  9,  11, 12, 15, 16, 17, 23, 24,
                              25, 31, 32, 33, 40, 47, 48, 56, 63, 64, 65, 72, 131};
  const int64_t sizes[] = {1, 2, 3, 3, 3, 3, 4, 5, 5, 7};
  DepthwiseSpec spec;
  spec.channels = random.pick(channels);
  spec.taps_h = random.pick(sizes);
  spec.taps_w = random.one_in(2) ? spec.taps_h : random.pick(sizes);
  spec.stride_h = random.one_in(2) ? 1 : random.between(1, 3);
  spec.stride_w = random.one_in(2) ? spec.stride_h : random.between(1, 3);
  spec.dilation_h = random.one_in(4) ? random.between(2, 3) : 1;
  spec.dilation_w = random.one_in(4) ? random.between(2, 3) : 1;
  if (squares) {
    const int64_t whole[] = {8, 16, 32, 40};
    spec.channels = random.pick(whole);
    spec.taps_h = spec.taps_w = 3;
    spec.stride_w = random.between(1, 2);
    spec.dilation_w = 1;
  }
  const int64_t reach = (spec.taps_w - 1) * spec.dilation_w + 1;
  spec.width = random.one_in(8) ? random.between(41, 300) : random.between(1, 40);
  spec.pad_left = random.between(0, reach - 1);
  const int64_t pad_right = random.between(0, reach - 1);
  spec.out_width = std::max<int64_t>(1, (spec.width + spec.pad_left + pad_right - reach) / spec.stride_w + 1);
  spec.zero_point = static_cast<uint8_t>(random.next());
  Exact<int16_t> weights(spec.taps_h * spec.taps_w * spec.channels);
  Exact<int32_t> bias(spec.channels);
  const int64_t kind = random.between(0, 5);
  for (int64_t i = 0; i < weights.count(); ++i) {
    const int16_t ends[] = {-255, 255, -128, 127};
    weights[i] = kind == 0   ? int16_t{255}
                 : kind == 1 ? random.pick(ends)
                             : static_cast<int16_t>(random.between(-128, 127));
    if (kind == 2) weights[i] = static_cast<int16_t>(random.between(-255, 255));
  }
  const bool wild = random.one_in(6);
  for (int64_t c = 0; c < spec.channels; ++c) {
    bias[c] = static_cast<int32_t>(wild ? random.between(INT32_MIN, INT32_MAX) : random.between(-5000, 5000));
  }
  // A channel whose bias is far from all others', as that of dead ones is.
  const int64_t taps = spec.taps_h * spec.taps_w;
  const int64_t dead = !wild && random.one_in(4) ? random.between(0, spec.channels - 1) : -1;
  if (dead >= 0) {
    const int64_t most = INT32_MAX - 255 * 255 * taps;
    bias[dead] = static_cast<int32_t>(random.between(-most, most));
    for (int64_t t = random.one_in(2) ? 0 : taps; t < taps; ++t) weights[t * spec.channels + dead] = 0;
  }
  double bound = 0;
  for (int64_t c = 0; c < spec.channels; ++c) {
    double sum = std::abs(static_cast<double>(bias[c]));
    for (int64_t t = 0; t < spec.taps_h * spec.taps_w; ++t) sum += 255.0 * std::abs(weights[t * spec.channels + c]);
    bound = std::max(bound, sum);
  }
  spec.weights = weights.data();
  spec.bias = bias.data();
  spec.pairs = kind > 2 && dead < 0 && random.one_in(2);
  if (spec.pairs && random.one_in(2)) {
    spec.weight_zero_point = static_cast<int32_t>(random.between(-128, 127));
    bound += 255.0 * 128 * static_cast<double>(spec.taps_h * spec.taps_w);
  }
  const double typical = 10000 * std::sqrt(static_cast<double>(spec.taps_h * spec.taps_w));
  spec.requantize = some_requantize(random, rule, store, random.one_in(3) ? 1 : spec.channels,
                                    kind <= 1 || wild ? bound : typical, bound);
  if (dead >= 0 && spec.requantize.multipliers.size() > 1) {
    spec.requantize.multipliers[dead] = some_multiplier(random, rule, INT32_MAX, false);
  }
  const std::unique_ptr<Depthwise> core = context.cores.depthwise(spec);

  const int64_t count = random.between(1, 5);
  const int64_t in_rows = (count - 1) * spec.stride_h + (spec.taps_h - 1) * spec.dilation_h + 1;
  std::vector<Exact<uint8_t>> memory;
  std::vector<const uint8_t*> rows;
  Exact<uint8_t> outside(spec.width * spec.channels);
  std::memset(outside.data(), spec.zero_point, outside.count());
  for (int64_t i = 0; i < in_rows; ++i) {
    memory.emplace_back(spec.width * spec.channels);
    fill_bytes(random, memory.back());
    rows.push_back(random.one_in(8) ? outside.data() : memory.back().data());
  }
  const int64_t size = spec.out_width * spec.channels;
  std::vector<uint8_t> expected(count * size);
  for (int64_t y = 0; y < count; ++y) {
    for (int64_t x = 0; x < spec.out_width; ++x) {
      for (int64_t c = 0; c < spec.channels; ++c) {
        uint32_t acc = static_cast<uint32_t>(bias[c]);
        int32_t waiting = 0;  // the first product of a pair
        for (int64_t i = 0; i < spec.taps_h; ++i) {
          for (int64_t j = 0; j < spec.taps_w; ++j) {
            const int64_t column = x * spec.stride_w + j * spec.dilation_w - spec.pad_left;
            const int32_t in = column < 0 || column >= spec.width
                                   ? spec.zero_point
                                   : rows[y * spec.stride_h + i * spec.dilation_h][column * spec.channels + c];
            const int64_t tap = i * spec.taps_w + j;
            const int32_t product = in * weights[tap * spec.channels + c];
            acc -= static_cast<uint32_t>(in * spec.weight_zero_point);
            if (!spec.pairs) {
              acc += static_cast<uint32_t>(product);
            } else if (tap % 2 == 0 && tap + 1 < spec.taps_h * spec.taps_w) {
              waiting = product;
            } else {
              acc += static_cast<uint32_t>(std::clamp((tap % 2 == 0 ? 0 : waiting) + product, -32768, 32767));
            }
          }
        }
        expected[y * size + x * spec.channels + c] =
            static_cast<uint8_t>(rules::requantize(spec.requantize, static_cast<int32_t>(acc), static_cast<size_t>(c)));
      }
    }
  }
  char text[240];
  std::snprintf(
      text, sizeof text,
      "channels %lld taps %lldx%lld stride %lldx%lld dilation %lldx%lld width %lld out %lldx%lld pad %lld wild %d; ",
      static_cast<long long>(spec.channels), static_cast<long long>(spec.taps_h), static_cast<long long>(spec.taps_w),
      static_cast<long long>(spec.stride_h), static_cast<long long>(spec.stride_w),
      static_cast<long long>(spec.dilation_h), static_cast<long long>(spec.dilation_w),
      static_cast<long long>(spec.width), static_cast<long long>(count), static_cast<long long>(spec.out_width),
      static_cast<long long>(spec.pad_left), wild);
  const std::string description = text + describe(spec.requantize);
  // Rows one behind the other, or anywhere.
  const int64_t adjacent = random.one_in(2) ? count : 1;
  std::vector<std::vector<Exact<uint8_t>>> outs(context.options.threads);
  for (auto& out : outs) {
    for (int64_t y = 0; y < count; y += adjacent) out.emplace_back(adjacent * size);
  }
  const auto target = [&](size_t k, int64_t y) {
    return outs[k][static_cast<size_t>(y / adjacent)].data() + y % adjacent * size;
  };
  on_threads(context.options.threads, [&](int k) {
    std::vector<uint8_t*> targets;
    for (int64_t y = 0; y < count; ++y) targets.push_back(target(k, y));
    const auto bytes = static_cast<size_t>((core->scratch() + 63) / 64 * 64);
    void* scratch = bytes == 0 ? nullptr : std::aligned_alloc(64, bytes);
    core->run(rows.data(), count, targets.data(), static_cast<uint8_t*>(scratch));
    std::free(scratch);
  });
  for (size_t k = 0; k < outs.size(); ++k) {
    for (int64_t y = 0; y < count; ++y) {
      context.report.expect_equal(target(k, y), &expected[y * size], size, description + " row " + std::to_string(y));
    }
  }
}

void check_depthwise(Context& context) {
  for (const rules::RescaleRule rule : kRescaleRules) {
    for (const rules::StoreRule store : kStoreRules) {
      for (int64_t i = 0; i < context.rounds(60); ++i) check_depthwise(context, rule, store, false);
      // Taps whose neighbours share what sets make of columns.
      for (int64_t i = 0; i < context.rounds(20); ++i) check_depthwise(context, rule, store, true);
    }
  }
}

// Element-wise cores -----------------------------------------------------------------------------------------------

void check_add(Context& context, rules::RescaleRule align, rules::RescaleRule rule, rules::StoreRule store) {
  Random& random = context.random;
  AddSpec spec;
  spec.align = align;
  spec.left = static_cast<int>(random.one_in(3) ? random.between(0, 23) : 20);
  spec.subtract = random.one_in(3);
  spec.first_zero_point = static_cast<int32_t>(random.between(0, 255));
  spec.second_zero_point = static_cast<int32_t>(random.between(0, 255));
  // As the rules are used: the larger scale becomes 1/2, the other one less.
  const double half = 0.5, ratio = std::exp2(-static_cast<double>(random.between(0, 600)) / 100);
  const auto encode = [&](double real) {
    rules::Multiplier m{0, 0, real};
    const int bits = align == rules::RescaleRule::q15_one_step_up ? 15 : 31;
    m.multiplier =
        std::min<int64_t>(std::llround(std::ldexp(std::frexp(real, &m.exponent), bits)), (int64_t{1} << bits) - 1);
    return m;
  };
  const bool swap = random.one_in(2);
  spec.first = encode(swap ? half : half * ratio);
  spec.second = encode(swap ? half * ratio : half);
  if (random.one_in(5)) {
    spec.first = some_multiplier(random, align, 100, true);
    spec.second = some_multiplier(random, align, 100, true);
  }
  const double size = std::ldexp(200.0, spec.left);
  spec.requantize = some_requantize(random, rule, store, 1, size, -1);
  const std::unique_ptr<Elementwise> core = context.cores.add(spec);

  const int64_t count = random.pick(kCounts);
  Exact<uint8_t> first(count), second(count);
  fill_bytes(random, first);
  fill_bytes(random, second);
  std::vector<uint8_t> expected(count);
  const auto aligned = [&](int64_t q, const rules::Multiplier& m) {
    return rules::apply(align, arithmetic::wrap_s32(q * (int64_t{1} << spec.left)), m);
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t a = aligned(first[i] - spec.first_zero_point, spec.first);
    const int64_t b = aligned(second[i] - spec.second_zero_point, spec.second);
    const int64_t sum = arithmetic::wrap_s32(spec.subtract ? a - b : a + b);
    expected[i] = static_cast<uint8_t>(rules::requantize(spec.requantize, sum, 0));
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "%lld elements align %d left %d subtract %d zero points %d %d first %lld e %d second %lld e %d; ",
                static_cast<long long>(count), static_cast<int>(align), spec.left, spec.subtract, spec.first_zero_point,
                spec.second_zero_point, static_cast<long long>(spec.first.multiplier), spec.first.exponent,
                static_cast<long long>(spec.second.multiplier), spec.second.exponent);
  const std::string description = text + describe(spec.requantize);
  std::vector<Exact<uint8_t>> outs;
  for (int k = 0; k < context.options.threads; ++k) outs.emplace_back(count);
  on_threads(context.options.threads, [&](int k) { core->run(first.data(), second.data(), outs[k].data(), count); });
  for (const Exact<uint8_t>& out : outs) context.report.expect_equal(out.data(), expected.data(), count, description);
  core->run(first.data(), second.data(), first.data(), count);
  context.report.expect_equal(first.data(), expected.data(), count, "in place, " + description);
}

void check_add(Context& context) {
  for (const rules::RescaleRule align : kRescaleRules) {
    for (const rules::RescaleRule rule : kRescaleRules) {
      for (const rules::StoreRule store : kStoreRules) {
        for (int64_t i = 0; i < context.rounds(20); ++i) check_add(context, align, rule, store);
      }
    }
  }
}

void check_mul(Context& context, const MulSpec& spec) {
  Random& random = context.random;
  const std::unique_ptr<Elementwise> core = context.cores.mul(spec);
  const int64_t count = random.pick(kCounts);
  Exact<uint8_t> first(count), second(count), out(count);
  fill_bytes(random, first);
  fill_bytes(random, second);
  std::vector<uint8_t> expected(count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t product = int64_t{first[i] - spec.first_zero_point} * (second[i] - spec.second_zero_point);
    expected[i] = static_cast<uint8_t>(rules::requantize(spec.requantize, product, 0));
  }
  core->run(first.data(), second.data(), out.data(), count);
  context.report.expect_equal(out.data(), expected.data(), count,
                              std::to_string(count) + " elements zero points " + std::to_string(spec.first_zero_point) +
                                  " " + std::to_string(spec.second_zero_point) + "; " + describe(spec.requantize));
}

void check_mul(Context& context, rules::RescaleRule rule, rules::StoreRule store) {
  Random& random = context.random;
  MulSpec spec;
  const bool wild = random.one_in(5);
  spec.first_zero_point = static_cast<int32_t>(wild ? random.between(-32000, 32000) : random.between(0, 255));
  spec.second_zero_point = static_cast<int32_t>(wild ? random.between(-32000, 32000) : random.between(0, 255));
  const auto span = [](int64_t zero_point) { return std::max(std::abs(zero_point), std::abs(255 - zero_point)); };
  const double bound = static_cast<double>(span(spec.first_zero_point) * span(spec.second_zero_point));
  spec.requantize = some_requantize(random, rule, store, 1, random.one_in(2) ? bound : bound / 8, bound);
  check_mul(context, spec);
}

// An addend by which results leave 32 bits, where the sum with the zero point is positive again.
MulSpec far_product() {
  MulSpec spec;
  spec.first_zero_point = 58;
  spec.second_zero_point = 187;
  rules::Requantize& r = spec.requantize;
  r.rescale = rules::RescaleRule::binary32_add_multiply_twice_even;
  r.multipliers.resize(1);
  r.multipliers[0].factor = 0x1.71a558c35cd5fp+1;
  r.multipliers[0].second = 0x1.629688p-2f;
  r.multipliers[0].addend = -0x1p31f;
  r.bound = 36840;
  r.wraps = false;
  r.zero_point = r.low = -128;
  r.high = 127;
  r.flip = 128;
  return spec;
}

void check_mul(Context& context) {
  for (int i = 0; i < 10; ++i) check_mul(context, far_product());
  for (const rules::RescaleRule rule : kRescaleRules) {
    for (const rules::StoreRule store : kStoreRules) {
      for (int64_t i = 0; i < context.rounds(120); ++i) check_mul(context, rule, store);
    }
  }
}

struct Taps {
  std::vector<Exact<uint8_t>> memory;
  std::vector<const uint8_t*> pointers;
  Taps(Random& random, int64_t taps, int64_t count) {
    const bool largest = random.one_in(4);
    for (int64_t k = 0; k < taps; ++k) {
      memory.emplace_back(count);
      fill_bytes(random, memory.back());
      if (largest) std::memset(memory.back().data(), 255, count);
      pointers.push_back(memory.back().data());
    }
  }
};

void check_max_rows(Context& context) {
  for (int64_t i = 0; i < context.rounds(600); ++i) {
    const int64_t count = context.random.pick(kCounts), taps = context.random.between(1, 20);
    const Taps rows(context.random, taps, count);
    const int low = static_cast<int>(context.random.one_in(2) ? 0 : context.random.between(0, 255));
    const int high = static_cast<int>(context.random.one_in(2) ? 255 : context.random.between(0, 255));
    Exact<uint8_t> out(count);
    std::vector<uint8_t> expected(count, 0);
    for (int64_t c = 0; c < count; ++c) {
      for (const uint8_t* tap : rows.pointers) expected[c] = std::max(expected[c], tap[c]);
      expected[c] = static_cast<uint8_t>(std::min(std::max<int>(expected[c], low), high));
    }
    context.cores.max_rows()(rows.pointers.data(), taps, out.data(), count, low, high);
    context.report.expect_equal(out.data(), expected.data(), count,
                                std::to_string(count) + " elements of " + std::to_string(taps) + " clamp " +
                                    std::to_string(low) + " " + std::to_string(high));
  }
}

void check_sum_rows(Context& context) {
  for (int64_t i = 0; i < context.rounds(300); ++i) {
    const int64_t counts[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 127, 129};
    const int64_t many[] = {255, 256, 257, 258, 259, 513, 514, 515, 1028, 1030};
    const int64_t count = context.random.pick(counts);
    const int64_t taps = i % 4 == 0 ? context.random.pick(many) : context.random.between(1, 80);
    const Taps rows(context.random, taps, count);
    Exact<int32_t> sums(count);
    std::vector<int32_t> expected(count, 0);
    for (int64_t c = 0; c < count; ++c) {
      for (const uint8_t* tap : rows.pointers) expected[c] += tap[c];
    }
    context.cores.sum_rows()(rows.pointers.data(), taps, sums.data(), count);
    context.report.expect_equal(sums.data(), expected.data(), count,
                                std::to_string(count) + " elements of " + std::to_string(taps));
  }
}

struct AverageCase {
  AverageSpec spec;
  int64_t taps, summand, below;

  AverageCase(Random& random, int64_t taps)
      : taps(taps), summand(random.between(0, taps)), below(random.between(0, taps)) {
    const rules::ShortQuotient quotient(taps);
    spec.taps = static_cast<uint16_t>(taps);
    spec.factor = quotient.factor;
    spec.shift = quotient.shift;
    spec.summand = static_cast<uint16_t>(summand + quotient.one);
    spec.summand_below = static_cast<uint16_t>(below + quotient.one);
    spec.below = static_cast<uint16_t>(random.one_in(2) ? 0 : 128 * taps);
    spec.low = static_cast<uint8_t>(random.one_in(2) ? 0 : random.between(0, 255));
    spec.high = static_cast<uint8_t>(random.one_in(2) ? 255 : random.between(spec.low, 255));
  }
  uint8_t operator()(int64_t sum) const {
    const int64_t average = (sum + (sum < spec.below ? below : summand)) / taps;
    return static_cast<uint8_t>(std::min<int64_t>(std::max<int64_t>(average, spec.low), spec.high));
  }
};

void check_average_rows(Context& context) {
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(600); ++i) {
    const int64_t count = i % 4 == 0 ? random.between(500, 1100) : random.pick(kCounts);
    const int64_t taps =
        random.one_in(8) ? rules::kMostShortCount : random.between(1, random.one_in(2) ? 9 : rules::kMostShortCount);
    Taps rows(random, taps, count);
    const AverageCase average(random, taps);
    Exact<uint8_t> out(count);
    std::vector<uint8_t> expected(count);
    for (int64_t c = 0; c < count; ++c) {
      int64_t sum = 0;
      for (const uint8_t* tap : rows.pointers) sum += tap[c];
      expected[c] = average(sum);
    }
    context.cores.average_rows()(average.spec, rows.pointers.data(), out.data(), count);
    context.report.expect_equal(out.data(), expected.data(), count,
                                std::to_string(count) + " elements of " + std::to_string(taps));
  }
}

void check_average_line(Context& context) {
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(600); ++i) {
    AverageLineSpec spec;
    spec.taps = random.between(1, AverageLineSpec::kMostTaps);
    spec.rows = random.between(1, rules::kMostShortCount / spec.taps);
    spec.columns = random.between(1, 12);
    spec.channels = i % 4 == 0 ? random.between(250, 550) : random.pick(kCounts);
    spec.before = random.between(0, spec.taps - 1);
    spec.out = random.between(1, spec.columns + spec.before);
    const Taps rows(random, spec.rows, spec.columns * spec.channels);
    std::vector<AverageCase> cases;
    std::vector<AverageSpec> averages;
    for (int64_t taps = 1; taps <= spec.rows * spec.taps; ++taps) {
      cases.emplace_back(random, taps);
      averages.push_back(cases.back().spec);
    }
    Exact<uint8_t> out(spec.out * spec.channels);
    std::vector<uint8_t> expected(spec.out * spec.channels);
    for (int64_t x = 0; x < spec.out; ++x) {
      const int64_t first = std::max<int64_t>(x - spec.before, 0);
      const int64_t last = std::min(x - spec.before + spec.taps, spec.columns);
      for (int64_t c = 0; c < spec.channels; ++c) {
        int64_t sum = 0;
        for (const uint8_t* row : rows.pointers) {
          for (int64_t column = first; column < last; ++column) sum += row[column * spec.channels + c];
        }
        expected[x * spec.channels + c] = cases[spec.rows * (last - first) - 1](sum);
      }
    }
    context.cores.average_line()(spec, averages.data(), rows.pointers.data(), out.data());
    context.report.expect_equal(out.data(), expected.data(), spec.out * spec.channels,
                                std::to_string(spec.out) + " windows of " + std::to_string(spec.rows) + " times " +
                                    std::to_string(spec.taps) + " pixels of " + std::to_string(spec.channels));
  }
}

void check_row_terms(Context& context) {
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(300); ++i) {
    const int64_t lengths[] = {1, 3, 4, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 517};
    const int64_t segments = random.between(1, 5), bytes = random.pick(lengths), count = random.between(1, 20);
    const int64_t capacity = count + random.between(0, 2);
    const Taps rows(random, segments * capacity, bytes);
    const auto factor =
        static_cast<int32_t>(random.one_in(4) ? random.between(INT32_MIN, INT32_MAX) : random.between(-255, 255));
    Exact<int32_t> terms(count);
    std::vector<int32_t> expected(count);
    for (int64_t r = 0; r < count; ++r) {
      uint32_t sum = 0;
      for (int64_t s = 0; s < segments; ++s) {
        for (int64_t d = 0; d < bytes; ++d) sum += rows.pointers[s * capacity + r][d];
      }
      expected[r] = static_cast<int32_t>(static_cast<uint32_t>(factor) * sum);
    }
    context.cores.row_terms()(rows.pointers.data(), capacity, segments, bytes, count, factor, terms.data());
    context.report.expect_equal(
        terms.data(), expected.data(), count,
        std::to_string(count) + " rows of " + std::to_string(segments) + " times " + std::to_string(bytes));
  }
}

// A measurement has no value to compare; it must say what it did.
void check_peak(Context& context) {
  const int64_t once = context.cores.peak_multiply_adds()(1), more = context.cores.peak_multiply_adds()(1000);
  context.report.expect(once > 0 && more == 1000 * once, "1000 rounds are not 1000 times one");
}

void check_lookup(Context& context) {
  for (int64_t i = 0; i < context.rounds(600); ++i) {
    const int64_t count = context.random.pick(kCounts);
    Exact<uint8_t> table(256), in(count), out(count);
    for (int64_t q = 0; q < 256; ++q) table[q] = static_cast<uint8_t>(context.random.next());
    fill_bytes(context.random, in);
    std::vector<uint8_t> expected(count);
    for (int64_t c = 0; c < count; ++c) expected[c] = table[in[c]];
    context.cores.lookup()(table.data(), in.data(), out.data(), count);
    context.report.expect_equal(out.data(), expected.data(), count, std::to_string(count) + " elements");
    context.cores.lookup()(table.data(), in.data(), in.data(), count);
    context.report.expect_equal(in.data(), expected.data(), count, std::to_string(count) + " elements in place");
  }
}

// Accumulators around every tie of the real product, the ends of the range, and anything.
int32_t some_accumulator(Random& random, const rules::Requantize& r, int64_t column) {
  const int64_t limit = r.wraps ? INT32_MAX : std::min<int64_t>(r.bound, INT32_MAX);
  const rules::Multiplier& m = r.at(static_cast<size_t>(column));
  const double scale = portable::real_multiplier(r.rescale, m);
  double at =
      (static_cast<double>(random.between(-300, 300)) + 0.5) / scale + static_cast<double>(random.between(-2, 2));
  if (random.one_in(4) || !(std::abs(at) < 2e9)) at = static_cast<double>(random.between(-limit, limit));
  if (random.one_in(20)) at = static_cast<double>(random.between(-3, 3));
  if (random.one_in(50)) at = static_cast<double>(random.one_in(2) ? limit : -limit - (r.wraps ? 1 : 0));
  at = std::min(std::max(at, static_cast<double>(-limit - (r.wraps ? 1 : 0))), static_cast<double>(limit));
  return static_cast<int32_t>(at);
}

void check_requantize_rows(Context& context) {
  Random& random = context.random;
  for (const rules::RescaleRule rule : kRescaleRules) {
    for (const rules::StoreRule store : kStoreRules) {
      for (int64_t i = 0; i < context.rounds(300); ++i) {
        const int64_t columns = random.pick(kCounts), rows = columns > 100 ? 1 : random.between(1, 11);
        const int64_t count = rows * columns;
        const double size = std::exp2(static_cast<double>(random.between(8, 28)));
        const rules::Requantize r =
            some_requantize(random, rule, store, random.one_in(2) ? 1 : columns, size, size * 4);
        Exact<int32_t> acc(count);
        Exact<uint8_t> out(count);
        std::vector<uint8_t> expected(count);
        for (int64_t c = 0; c < count; ++c) {
          acc[c] = some_accumulator(random, r, c % columns);
          expected[c] = static_cast<uint8_t>(rules::requantize(r, acc[c], static_cast<size_t>(c % columns)));
        }
        context.cores.requantize_rows()(r, acc.data(), rows, out.data(), columns);
        context.report.expect_equal(out.data(), expected.data(), count,
                                    std::to_string(rows) + " x " + std::to_string(columns) + "; " + describe(r));
      }
    }
  }
}

// The thread pool: every task once, whatever the number of threads; parallel to the cores so that ThreadSanitizer sees it.
bool check_pool(int threads) {
  ThreadPool pool(threads);
  std::unique_ptr<ThreadPool::Awake> awake;
  bool right = true;
  for (int round = 0; round < 200; ++round) {
    if (round % 20 == 0) awake = std::make_unique<ThreadPool::Awake>(pool);
    if (round % 20 == 10) awake.reset();
    const int64_t tasks = round % 37;
    std::vector<int> done(static_cast<size_t>(tasks), 0);
    pool.parallel(tasks, [&](int64_t task, int worker) { done[task] += worker >= 0 && worker < threads ? 1 : 100; });
    right = right && std::all_of(done.begin(), done.end(), [](int n) { return n == 1; });
  }
  awake.reset();
  // Whole runs, which the pool times in order to choose how to share: a trial of all choices is among these.
  for (int run = 0; run < 100; ++run) {
    ThreadPool::Awake whole(pool);
    for (const int64_t work : {0, 1'000, 10'000, 100'000}) {
      std::vector<int> done(17, 0);
      pool.parallel(17, pool.threads_for(work), [&](int64_t task, int) { ++done[task]; });
      right = right && std::all_of(done.begin(), done.end(), [](int n) { return n == 1; });
    }
    whole.finish();
  }
  std::printf("%s pool of %d threads\n", right ? "ok  " : "FAIL", threads);
  return right;
}

using Check = void (*)(Context&);

struct CheckRow {
  const char* core;
  Check check;
};

constexpr CheckRow kChecks[] = {
    {"matmul", check_matmul},
    {"depthwise", check_depthwise},
    {"add", check_add},
    {"mul", check_mul},
    {"fused_sum", check_fused_sum},
    {"scaled_product", check_scaled_product},
    {"quantize_reals", check_quantize_reals},
    {"layer_sums", check_layer_sums},
    {"scale_bytes", check_scale_bytes},
    {"gate_sums", check_gate_sums},
    {"real_function", check_real_function},
    {"real_loop", check_real_loop},
    {"pair_loop", check_pair_loop},
    {"softmax_rows", check_softmax_rows},
    {"widen_halves", check_halves},
    {"narrow_to_halves", check_halves},
    {"normalize_rows", check_normalize_rows},
    {"max_rows", check_max_rows},
    {"sum_rows", check_sum_rows},
    {"average_rows", check_average_rows},
    {"average_line", check_average_line},
    {"lookup", check_lookup},
    {"requantize_rows", check_requantize_rows},
    {"row_terms", check_row_terms},
    {"peak_multiply_adds", check_peak},
    {"real_matmul", check_real_matmul},
    {"wide_matmul", check_wide_matmul},
    {"real_taps", check_real_taps},
    {"byte_product", check_byte_product},
    {"pair_product", check_pair_product},
    {"block_product", check_block_product},
    {"real_taps_fused", check_real_taps_fused},
    {"real_plane", check_real_plane},
    {"real_lanes", check_real_lanes},
    {"window_product", check_window_product},
    {"transpose_reals", check_transpose_reals},
    {"add_outer", check_add_outer},
};

// The cores that `isa` brings itself; others have been checked with the set they come from.
bool check_isa(const std::string& isa, const Options& options) {
  const CoreSet cores(isa);
  bool right = true;
  for (const auto& pair : cores.rows()) {
    const std::string& core = pair.second;
    if (pair.first != isa) continue;
    const auto* row =
        std::find_if(std::begin(kChecks), std::end(kChecks), [&](const CheckRow& r) { return core == r.core; });
    if (row == std::end(kChecks)) {
      std::printf("FAIL %s: no check for this core\n", core.c_str());
      right = false;
      continue;
    }
    Context context{cores, options, Random(options.seed), Report(isa, core)};
    row->check(context);
    right = context.report.finish() && right;
  }
  return right;
}

}  // namespace
}  // namespace bittrue::test

int main(int argc, char** argv) {
  using namespace bittrue;  // NOLINT
  test::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--seed") options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--scale") options.scale = std::strtoll(argv[i + 1], nullptr, 10);
    if (option == "--threads") options.threads = std::max(1, std::atoi(argv[i + 1]));
    if (option == "--isa") options.isa = argv[i + 1];
  }
  std::printf("compiled:");
  for (const std::string& isa : CoreSet::compiled()) std::printf(" %s", isa.c_str());
  std::printf("; this processor runs:");
  for (const std::string& isa : CoreSet::available()) std::printf(" %s", isa.c_str());
  std::printf("\n");
  bool right = test::check_pool(options.threads + 1) && test::check_pool(6), found = options.isa.empty();
  for (const std::string& isa : CoreSet::available()) {
    if (!options.isa.empty() && isa != options.isa) continue;
    found = true;
    right = test::check_isa(isa, options) && right;
  }
  if (!found) std::printf("FAIL this processor does not run %s\n", options.isa.c_str());
  return right && found ? 0 : 1;
}
