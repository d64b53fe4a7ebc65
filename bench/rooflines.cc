// What the cores of every instruction set of this processor reach, and the rates that bound them, as JSON lines:
//   rooflines [ROUNDS]
// Processor time of this thread; all take turns in every round, and the best round of each counts.
//   rooflines count INDEX CALLS
// Calls one core so often, where somebody else counts (bench/instructions.py); the portable set is among them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/core_set.h"

namespace bittrue {
namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Measured {
  std::string isa, core, shape;
  double work, bytes;  // of one call: multiply-adds or elements, and what is read and written at least
  std::function<void()> run;
  double best = 1e30;
};

std::vector<uint8_t> bytes(size_t count) {
  std::vector<uint8_t> result(count);
  uint32_t state = 1;
  for (uint8_t& b : result) b = static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  return result;
}

std::vector<float> reals(size_t count) {
  const std::vector<uint8_t> source = bytes(count);
  std::vector<float> result(count);
  for (size_t i = 0; i < count; ++i) result[i] = (static_cast<float>(source[i]) - 128.0f) / 16.0f;
  return result;
}

// What follows lives as long as the program.
template <class T>
T& kept(T value) {
  return **new std::unique_ptr<T>(new T(std::move(value)));  // NOLINT
}

rules::Requantize requantize(int64_t columns, int64_t bound) {
  rules::Requantize r;
  r.bound = bound;
  r.wraps = false;
  r.zero_point = 3;
  r.low = -128;
  r.high = 127;
  r.flip = 128;
  for (int64_t c = 0; c < columns; ++c) {
    rules::Multiplier m;
    m.multiplier = 1500000001 + 7654321 * (c % 64);
    m.exponent = -9;
    r.multipliers.push_back(m);
  }
  return r;
}

// Multiply-adds of binary32 in registers, by the widest vectors of the baseline that this file is compiled for.
template <class Vector>
void real_chains(int64_t rounds) {
  Vector sums[8], factor{};
  factor += 1.0001f;
  for (int i = 0; i < 8; ++i) sums[i] = factor * static_cast<float>(i);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sums[i] = sums[i] * factor + factor;
  }
  volatile float sink = 0;
  for (int i = 0; i < 8; ++i) sink = sink + sums[i][0];
}

void add_cores(const std::string& isa, std::vector<Measured>& all) {
  const CoreSet& cores = kept(CoreSet(isa));
  const auto add = [&](const char* core, const std::string& shape, double work, double moved,
                       std::function<void()> run) { all.push_back({isa, core, shape, work, moved, std::move(run)}); };
  add("peak of bytes", "registers", static_cast<double>(cores.peak_multiply_adds()(10000)), 0,
      [&cores] { cores.peak_multiply_adds()(10000); });

  struct Product {
    const char* name;
    int64_t rows, columns, depth;
  };
  for (const Product& p : {Product{"matrix product", 288, 192, 1344}, Product{"matrix product", 196, 384, 64},
                           Product{"recurrent step", 1, 512, 128}}) {
    MatmulSpec spec;
    const std::vector<uint8_t>& weights = kept(bytes(static_cast<size_t>(p.columns * p.depth)));
    const std::vector<int32_t> bias(static_cast<size_t>(p.columns), 0);
    spec.columns = p.columns;
    spec.depth = p.depth;
    spec.weights = reinterpret_cast<const int8_t*>(weights.data());
    spec.bias = bias.data();
    spec.requantize = requantize(p.columns, p.depth * 255 * 128);
    const Matmul& core = *kept(cores.matmul(spec));
    const std::vector<uint8_t>& in = kept(bytes(static_cast<size_t>(p.rows * p.depth)));
    std::vector<uint8_t>& out = kept(std::vector<uint8_t>(static_cast<size_t>(p.rows * p.columns)));
    std::vector<const uint8_t*>& rows = kept(std::vector<const uint8_t*>());
    for (int64_t r = 0; r < p.rows; ++r) rows.push_back(in.data() + r * p.depth);
    MatmulRows& call = kept(MatmulRows{});
    call.rows = rows.data();
    call.capacity = call.count = p.rows;
    call.out = out.data();
    call.out_stride = p.columns;
    add(p.name,
        std::to_string(p.rows) + (p.rows == 1 ? " row, depth " : " rows, depth ") + std::to_string(p.depth) + ", " +
            std::to_string(p.columns) + " columns",
        static_cast<double>(p.rows * p.columns * p.depth),
        static_cast<double>(p.rows * (p.depth + p.columns) + p.columns * p.depth),
        [&core, &call] { core.run(call, 0, core.panels()); });
  }

  {
    constexpr int64_t kSide = 14, kChannels = 384;
    DepthwiseSpec spec;
    spec.channels = kChannels;
    spec.taps_h = spec.taps_w = 3;
    spec.width = spec.out_width = kSide;
    spec.pad_left = 1;
    std::vector<int16_t> weights(9 * kChannels);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int16_t>(static_cast<int>(i * 37 % 255) - 127);
    const std::vector<int32_t> bias(kChannels, 0);
    spec.weights = weights.data();
    spec.bias = bias.data();
    spec.requantize = requantize(kChannels, 9 * 255 * 128);
    const Depthwise& core = *kept(cores.depthwise(spec));
    const std::vector<uint8_t>& image = kept(bytes((kSide + 2) * kSide * kChannels));
    std::vector<uint8_t>& out = kept(std::vector<uint8_t>(kSide * kSide * kChannels));
    std::vector<uint8_t>& scratch = kept(std::vector<uint8_t>(static_cast<size_t>(core.scratch()) + 64));
    std::vector<const uint8_t*>& rows = kept(std::vector<const uint8_t*>());
    std::vector<uint8_t*>& results = kept(std::vector<uint8_t*>());
    for (int64_t y = 0; y < kSide + 2; ++y) rows.push_back(image.data() + y * kSide * kChannels);
    for (int64_t y = 0; y < kSide; ++y) results.push_back(out.data() + y * kSide * kChannels);
    uint8_t* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    add("depthwise", "3 x 3, 14 x 14 x 384", 9.0 * kSide * kSide * kChannels, 2.0 * kSide * kSide * kChannels,
        [&core, &rows, &results, aligned] {
          for (int64_t y = 0; y < kSide; y += core.preferred_rows()) {
            core.run(rows.data() + y, std::min(core.preferred_rows(), kSide - y), results.data() + y, aligned);
          }
        });
  }

  {
    const PairProduct& core = cores.pair_product();
    constexpr int64_t kRows = 24, kDepth = 128, kColumns = 64;
    const int64_t width = core.lanes * core.vectors;
    const std::vector<uint8_t>&in = kept(bytes(kRows * kDepth)), &weights = kept(bytes(kColumns * kDepth));
    std::vector<int32_t>& sums = kept(std::vector<int32_t>(kRows * kColumns));
    add("matrix product, pairs saturate", "24 rows, depth 128, 64 columns", kRows * kColumns * kDepth,
        kRows * (kDepth + 4.0 * kColumns) + kColumns * kDepth, [&core, &in, &weights, &sums, width] {
          for (int64_t first = 0; first < kColumns; first += width) {
            ByteRows rows;
            rows.rows = in.data();
            rows.row_step = rows.depth = kDepth;
            rows.count = kRows;
            rows.sums = sums.data() + first;
            rows.stride = kColumns;
            core.run(rows, reinterpret_cast<const int8_t*>(weights.data()) + first * kDepth, width);
          }
        });
  }

  constexpr int64_t kCount = 16384;
  const std::vector<uint8_t>&first = kept(bytes(kCount)), &second = kept(bytes(kCount + 1));
  std::vector<uint8_t>& out = kept(std::vector<uint8_t>(kCount));
  {
    rules::Requantize& once = kept(requantize(1, 1 << 20));
    once.rescale = rules::RescaleRule::q31_one_step_up_shift_wraps;
    std::vector<int32_t>& sums = kept(std::vector<int32_t>(kCount));
    for (int64_t i = 0; i < kCount; ++i) sums[static_cast<size_t>(i)] = static_cast<int32_t>(i * 64) - (1 << 19);
    constexpr int64_t kColumns = 512;
    for (const auto& [shape, rule] : {std::pair<const char*, const rules::Requantize*>{"16,384 sums, one multiplier",
                                                                                       &kept(requantize(1, 1 << 20))},
                                      {"16,384 sums, 512 multipliers", &kept(requantize(kColumns, 1 << 20))},
                                      {"16,384 sums, one multiplier, one step", &once}}) {
      add("requantization", shape, kCount, 5.0 * kCount, [&cores, rule = rule, &sums, &out] {
        cores.requantize_rows()(*rule, sums.data(), kCount / kColumns, out.data(), kColumns);
      });
    }
  }
  {
    AddSpec spec;
    spec.first_zero_point = 120;
    spec.second_zero_point = 131;
    spec.first.multiplier = 1500000001;
    spec.second.multiplier = 1100000003;
    spec.requantize = requantize(1, int64_t{1} << 29);
    spec.requantize.multipliers[0].exponent = -19;
    const Elementwise& core = *kept(cores.add(spec));
    add("element-wise", "sum of 16,384 bytes", kCount, 3.0 * kCount,
        [&core, &first, &second, &out] { core.run(first.data(), second.data(), out.data(), kCount); });
  }
  {
    MulSpec spec;
    spec.first_zero_point = 120;
    spec.second_zero_point = 131;
    spec.requantize = requantize(1, 1 << 15);
    const Elementwise& core = *kept(cores.mul(spec));
    add("element-wise", "product of 16,384 bytes", kCount, 3.0 * kCount,
        [&core, &first, &second, &out] { core.run(first.data(), second.data(), out.data(), kCount); });
  }
  {
    FusedSumSpec spec;
    spec.first_scale = 0.37f;
    spec.second_scale = 0.81f;
    spec.addend = 3.0f;
    spec.is_signed = true;
    const Elementwise& core = *kept(cores.fused_sum(spec));
    add("element-wise", "sum of 16,384 bytes in binary32", kCount, 3.0 * kCount,
        [&core, &first, &second, &out] { core.run(first.data(), second.data(), out.data(), kCount); });
  }
  {
    ScaledProductSpec spec;
    spec.first_zero_point = -8;
    spec.second_zero_point = 3;
    spec.factor = 0.007f;
    spec.is_signed = true;
    const Elementwise& core = *kept(cores.scaled_product(spec));
    add("element-wise", "product of 16,384 bytes in binary32", kCount, 3.0 * kCount,
        [&core, &first, &second, &out] { core.run(first.data(), second.data(), out.data(), kCount); });
  }
  {
    const std::vector<float>& in = kept(reals(kCount));
    const QuantizeSpec& spec = kept(QuantizeSpec{0.05f, -128, 127, 128});
    add("quantization", "16,384 binary32", kCount, 5.0 * kCount,
        [&cores, &spec, &in, &out] { cores.quantize_reals()(spec, in.data(), out.data(), kCount); });
  }
  {
    // 9 rows of 1,024 of these bytes.
    constexpr int64_t kTaps = 9, kRow = 1024;
    std::vector<const uint8_t*>& taps = kept(std::vector<const uint8_t*>());
    for (int64_t t = 0; t < kTaps; ++t) taps.push_back(first.data() + t * kRow);
    std::vector<int32_t>& sums = kept(std::vector<int32_t>(kRow));
    add("pool", "largest of 9 rows of 1,024 bytes", kTaps * kRow, (kTaps + 1) * kRow,
        [&cores, &taps, &out] { cores.max_rows()(taps.data(), kTaps, out.data(), kRow, 0, 255); });
    add("pool", "sums of 9 rows of 1,024 bytes", kTaps * kRow, (kTaps + 4) * kRow,
        [&cores, &taps, &sums] { cores.sum_rows()(taps.data(), kTaps, sums.data(), kRow); });
    add("row terms", "9 rows of 1,024 bytes", kTaps * kRow, kTaps * kRow,
        [&cores, &taps, &sums] { cores.row_terms()(taps.data(), kTaps, 1, kRow, kTaps, 3, sums.data()); });
  }
  add("element-wise", "16,384 bytes through a table", kCount, 2.0 * kCount,
      [&cores, &first, &second, &out] { cores.lookup()(second.data(), first.data(), out.data(), kCount); });
  {
    constexpr int64_t kRow = 1024;
    const std::vector<float>& in = kept(reals(kRow));
    std::vector<float>& result = kept(std::vector<float>(kRow));
    // Nine multiply-adds are in each exponential.
    add("softmax", "row of 1,024 binary32", 9.0 * kRow, 8.0 * kRow,
        [&cores, &in, &result] { cores.softmax_rows().row(in.data(), result.data(), kRow, 16); });
  }
  {
    const RealMatmul& core = cores.real_matmul();
    const int64_t width = core.lanes * core.vectors, depth = 128, panels = 512 / width;
    const std::vector<float>&weights = kept(reals(static_cast<size_t>(panels * width * depth))),
          &row = kept(reals(static_cast<size_t>(depth)));
    std::vector<float>& sums = kept(std::vector<float>(static_cast<size_t>(panels * width)));
    const float*& pointer = kept(static_cast<const float*>(row.data()));
    add("recurrent step, binary32", "1 row, depth 128, " + std::to_string(panels * width) + " columns",
        static_cast<double>(panels * width * depth), 4.0 * static_cast<double>(panels * width * depth),
        [&core, &weights, &sums, &pointer, width, panels] {
          for (int64_t p = 0; p < panels; ++p) {
            RealRows rows;
            rows.rows = &pointer;
            rows.capacity = rows.count = 1;
            rows.depth = 128;
            rows.sums = sums.data() + p * width;
            rows.stride = width;
            core.run_fused(rows, weights.data() + p * width * 128, width);
          }
        });
  }
}

using Lanes = float __attribute__((vector_size(BITTRUE_REAL_BYTES), aligned(4), may_alias));

// Bytes read from a cache that holds so many.
void add_reads(std::vector<Measured>& all) {
  for (const auto& [name, size] : {std::pair<const char*, size_t>{"read, 16 KiB", 16384}, {"read, 256 KiB", 262144}}) {
    const std::vector<float>& from = kept(reals(size / 4));
    all.push_back({"", name, "whole vectors", 0, static_cast<double>(size), [&from] {
                     constexpr size_t kStep = sizeof(Lanes) / 4;
                     Lanes sums[8] = {};
                     for (size_t i = 0; i < from.size(); i += 8 * kStep) {
#pragma GCC unroll 8
                       for (size_t j = 0; j < 8; ++j) {
                         sums[j] += *reinterpret_cast<const Lanes*>(from.data() + i + j * kStep);
                       }
                     }
                     volatile float sink = 0;
                     for (const Lanes& sum : sums) sink = sink + sum[0];
                   }});
  }
}

}  // namespace
}  // namespace bittrue

int main(int argc, char** argv) {
  using namespace bittrue;  // NOLINT
  const bool count = argc > 3;
  const int rounds = argc > 1 && !count ? std::atoi(argv[1]) : 30;
  std::vector<Measured> all;
  for (const std::string& isa : CoreSet::available()) {
    if (count || isa != "portable") add_cores(isa, all);
  }
  if (count) {
    const auto index = static_cast<size_t>(std::atoi(argv[2]));
    if (index >= all.size()) return 1;
    const Measured& m = all[index];
    for (int calls = std::atoi(argv[3]); calls > 0; --calls) m.run();
    std::printf("{\"isa\": \"%s\", \"core\": \"%s\", \"shape\": \"%s\", \"work\": %.0f}\n", m.isa.c_str(),
                m.core.c_str(), m.shape.c_str(), m.work);
    return 0;
  }
  add_reads(all);
  constexpr int64_t kRounds = 10000;
  all.push_back({"", "peak of binary32", std::to_string(BITTRUE_REAL_BYTES / 4) + " lanes in registers",
                 8.0 * kRounds * BITTRUE_REAL_BYTES / 4, 0, [] { real_chains<Lanes>(kRounds); }});
  // A round of one lasts about a millisecond.
  std::vector<int64_t> calls;
  for (Measured& m : all) {
    int64_t count = 1;
    for (;; count *= 2) {
      const double before = now();
      for (int64_t i = 0; i < count; ++i) m.run();
      if (now() - before > 1e-3) break;
    }
    calls.push_back(count);
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      const double before = now();
      for (int64_t c = 0; c < calls[i]; ++c) all[i].run();
      all[i].best = std::min(all[i].best, (now() - before) / static_cast<double>(calls[i]));
    }
  }
  for (const Measured& m : all) {
    std::printf(
        "{\"isa\": \"%s\", \"core\": \"%s\", \"shape\": \"%s\", \"work\": %.0f, \"bytes\": %.0f, \"seconds\": %.6g}\n",
        m.isa.c_str(), m.core.c_str(), m.shape.c_str(), m.work, m.bytes, m.best);
  }
  return 0;
}
