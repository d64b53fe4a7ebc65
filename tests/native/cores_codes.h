// The cores between stored bytes and binary32, functions and rows of binary32, and products of computed bytes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "arithmetic/narrow_float.h"
#include "arithmetic/rational.h"
#include "cores_cases.h"
#include "cores_real.h"
#include "cores_report.h"

namespace bittrue::test {

inline void check_fused_sum(Context& context) {
  Random& random = context.random;
  for (int64_t round = 0; round < context.rounds(400); ++round) {
    FusedSumSpec spec;
    spec.is_signed = random.one_in(2);
    // Round numbers make ties; wild ones leave 32 bits.
    const auto scale = [&] {
      const double exponent = static_cast<double>(random.between(-1000, 300)) / 100;
      const double real = std::exp2(random.one_in(3) ? std::floor(exponent) : exponent);
      return static_cast<float>(random.one_in(20) ? real * 1e9 : real);
    };
    spec.first_scale = scale();
    spec.second_scale = scale();
    spec.addend =
        static_cast<float>(static_cast<double>(random.between(-40000, 40000)) / (random.one_in(2) ? 100 : 128));
    if (random.one_in(2)) {
      spec.factor = scale();
      spec.zero_point = static_cast<float>(random.between(-128, 255));
    }
    const std::unique_ptr<Elementwise> core = context.cores.fused_sum(spec);
    const int64_t count = random.pick(kCounts);
    Exact<uint8_t> first(count), second(count);
    fill_bytes(random, first);
    fill_bytes(random, second);
    std::vector<uint8_t> expected(count);
    const int flip = spec.is_signed ? 128 : 0;
    for (int64_t i = 0; i < count; ++i) {
      const float inner = std::fma(static_cast<float>(second[i] - flip), spec.second_scale, spec.addend);
      const float real = std::fma(static_cast<float>(first[i] - flip), spec.first_scale, inner);
      const float sum = std::nearbyint(std::fma(real, spec.factor, spec.zero_point));
      const double stored = sum < 2147483648.0f ? static_cast<double>(sum) : -2147483648.0;
      expected[i] = static_cast<uint8_t>(std::min(std::max(stored, -1.0 * flip), 255.0 - flip) + flip);
    }
    char text[160];
    std::snprintf(text, sizeof text, "%lld elements, signed %d, %a * first + %a * second + %a",
                  static_cast<long long>(count), spec.is_signed, static_cast<double>(spec.first_scale),
                  static_cast<double>(spec.second_scale), static_cast<double>(spec.addend));
    std::vector<Exact<uint8_t>> outs;
    for (int k = 0; k < context.options.threads; ++k) outs.emplace_back(count);
    on_threads(context.options.threads, [&](int k) { core->run(first.data(), second.data(), outs[k].data(), count); });
    for (const Exact<uint8_t>& out : outs) context.report.expect_equal(out.data(), expected.data(), count, text);
    core->run(first.data(), second.data(), first.data(), count);
    context.report.expect_equal(first.data(), expected.data(), count, text + std::string(" in place"));
  }
}

inline void check_scaled_product(Context& context) {
  Random& random = context.random;
  for (int64_t round = 0; round < context.rounds(400); ++round) {
    ScaledProductSpec spec;
    spec.is_signed = random.one_in(2);
    const int flip = spec.is_signed ? 128 : 0;
    const auto point = [&] { return static_cast<float>(random.between(-flip, 255 - flip)); };
    spec.first_zero_point = point(), spec.second_zero_point = point(), spec.zero_point = point();
    const double exponent = static_cast<double>(random.between(-1800, 300)) / 100;
    const double real = std::exp2(random.one_in(3) ? std::floor(exponent) : exponent);
    spec.factor = static_cast<float>(random.one_in(20) ? real * 1e30 : real);
    const std::unique_ptr<Elementwise> core = context.cores.scaled_product(spec);
    const int64_t count = random.pick(kCounts);
    Exact<uint8_t> first(count), second(count), out(count);
    fill_bytes(random, first);
    fill_bytes(random, second);
    std::vector<uint8_t> expected(count);
    for (int64_t i = 0; i < count; ++i) {
      const float a = static_cast<float>(first[i] - flip) - spec.first_zero_point;
      const float b = static_cast<float>(second[i] - flip) - spec.second_zero_point;
      const float sum = std::nearbyint(a * b * spec.factor + spec.zero_point);
      const double stored = sum < 2147483648.0f ? static_cast<double>(sum) : -2147483648.0;
      expected[i] = static_cast<uint8_t>(std::min(std::max(stored, -1.0 * flip), 255.0 - flip) + flip);
    }
    core->run(first.data(), second.data(), out.data(), count);
    char text[80];
    std::snprintf(text, sizeof text, "%lld elements, signed %d, factor %a", static_cast<long long>(count),
                  spec.is_signed, static_cast<double>(spec.factor));
    context.report.expect_equal(out.data(), expected.data(), count, text);
  }
}

namespace twin {
#include "isa/core_declarations.inc"
#include "isa/pair_loops.inc"
#include "isa/real_functions.inc"
#include "isa/real_loops.inc"
}  // namespace twin

inline void check_real_function(Context& context) {
  Random& random = context.random;
  const RealFunctionCore core = context.cores.real_function();
  for (const RealFunction function :
       {RealFunction::exp, RealFunction::logistic, RealFunction::tanh, RealFunction::erf, RealFunction::gelu,
        RealFunction::gelu_tanh, RealFunction::logistic_by_quotient, RealFunction::tanh_by_quotient}) {
    for (int64_t round = 0; round < context.rounds(100); ++round) {
      const int64_t count = random.pick(kCounts);
      Exact<float> in(count), out(count);
      const float strange[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 3e38f, -3e38f, 1e-45f, 0.921875f, 3.925f};
      for (int64_t i = 0; i < count; ++i) {
        const double size = std::exp2(static_cast<double>(random.between(-3000, 700)) / 100);
        in[i] = random.one_in(12) ? random.pick(strange) : static_cast<float>(random.one_in(2) ? size : -size);
      }
      std::vector<float> expected(count);
      for (int64_t i = 0; i < count; ++i) {
        // One at a time, so that no vectors are made of it.
        volatile float x = in[i];
        const float one = x;
        twin::real_function(function, &one, &expected[i], 1);
      }
      core(function, in.data(), out.data(), count);
      char text[80];
      std::snprintf(text, sizeof text, "function %d of %lld elements", static_cast<int>(function),
                    static_cast<long long>(count));
      context.report.expect_equal(reinterpret_cast<const uint8_t*>(out.data()),
                                  reinterpret_cast<const uint8_t*>(expected.data()), 4 * count, text);
    }
  }
}

inline void check_real_loop(Context& context) {
  Random& random = context.random;
  const RealLoopCore core = context.cores.real_loop();
  for (int function = RealLoop::log; function <= RealLoop::arc_tangent; ++function) {
    for (int64_t round = 0; round < context.rounds(100); ++round) {
      const int64_t count = random.pick(kCounts);
      Exact<float> in(count), out(count);
      const float strange[] = {0.0f,   -0.0f, INFINITY, -INFINITY, NAN,   -NAN,  3e38f, -3e38f,
                               1e-45f, 0.5f,  -0.5f,    2.5f,      -1.5f, 1e-7f, -6.0f, 8388607.5f};
      for (int64_t i = 0; i < count; ++i) {
        const double size = std::exp2(static_cast<double>(random.between(-3000, 3000)) / 100);
        in[i] = random.one_in(8) ? random.pick(strange) : static_cast<float>(random.one_in(2) ? size : -size);
      }
      const auto number = [&] { return static_cast<float>(static_cast<double>(random.between(-3000, 3000)) / 1000); };
      const RealLoop loop{static_cast<RealLoop::Function>(function), number(), number()};
      std::vector<float> expected(count);
      for (int64_t i = 0; i < count; ++i) {
        volatile float x = in[i];
        const float one = x;
        twin::real_loop(loop, &one, &expected[i], 1);
      }
      core(loop, in.data(), out.data(), count);
      char text[80];
      std::snprintf(text, sizeof text, "loop %d of %lld elements", function, static_cast<long long>(count));
      context.report.expect_equal(reinterpret_cast<const uint8_t*>(out.data()),
                                  reinterpret_cast<const uint8_t*>(expected.data()), 4 * count, text);
    }
  }
}

template <class T>
inline void check_pairs_of(Context& context, PairLoop::Number number) {
  Random& random = context.random;
  for (int operation = PairLoop::sum; operation <= PairLoop::power; ++operation) {
    if (operation == PairLoop::quotient && number < PairLoop::f32 && number != PairLoop::s32) continue;
    const bool divides = operation == PairLoop::quotient && number == PairLoop::s32;
    if (operation == PairLoop::power && number != PairLoop::f32) continue;
    for (int64_t round = 0; round < context.rounds(30); ++round) {
      const int64_t count = random.pick(kCounts);
      const PairLoop loop{static_cast<PairLoop::Operation>(operation), number, random.one_in(3), random.one_in(3)};
      Exact<T> first(loop.one_first ? 1 : count), second(loop.one_second ? 1 : count);
      const bool strange = random.one_in(4);
      const int64_t least = operation == PairLoop::power && random.one_in(2) ? 1 : -9;
      const auto fill = [&](Exact<T>& values, int64_t size) {
        const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN, 1e300, 1e-300};
        for (int64_t i = 0; i < size; ++i) {
          const auto bits = static_cast<uint64_t>(random.between(INT32_MIN, INT32_MAX)) * 0x9E3779B97F4A7C15u;
          if (number < PairLoop::f32) {
            const T ends[] = {std::numeric_limits<T>::min(), static_cast<T>(-1)};
            values[i] = random.one_in(9) ? random.pick(ends) : static_cast<T>(random.one_in(3) ? bits & 3 : bits);
            if (divides && values[i] == 0) values[i] = 1;
          } else {
            values[i] = strange && random.one_in(5) ? static_cast<T>(random.pick(odd))
                                                    : static_cast<T>(static_cast<double>(random.between(least, 9)) / 7);
          }
        }
      };
      fill(first, loop.one_first ? 1 : count);
      fill(second, loop.one_second ? 1 : count);
      const size_t bytes = operation >= PairLoop::equal && operation <= PairLoop::greater_equal ? 1 : sizeof(T);
      Exact<uint8_t> out(count * static_cast<int64_t>(bytes));
      std::vector<uint8_t> expected(count * bytes);
      bool defined = true;
      for (int64_t i = 0; i < count; ++i) {
        // One at a time, so that no vectors are made of it.
        const volatile T x = first[loop.one_first ? 0 : i], y = second[loop.one_second ? 0 : i];
        const T a = x, b = y;
        if (divides) {
          const int64_t exact = static_cast<int64_t>(a) / static_cast<int64_t>(b);
          const auto quotient = static_cast<int32_t>(std::min<int64_t>(exact, INT32_MAX));
          std::memcpy(expected.data() + i * bytes, &quotient, sizeof quotient);
          continue;
        }
        defined &= twin::pair_loop(loop, &a, &b, expected.data() + i * bytes, 1);
      }
      const bool same = context.cores.pair_loop()(loop, first.data(), second.data(), out.data(), count) == defined;
      char text[100];
      std::snprintf(text, sizeof text, "operation %d of kind %d, %lld elements, verdicts equal %d", operation, number,
                    static_cast<long long>(count), same);
      const uint8_t right = 1, found = same;
      context.report.expect_equal(&found, &right, 1, text);
      // Bits of a NaN that arises are the caller's to settle.
      if (defined) context.report.expect_equal(out.data(), expected.data(), count * static_cast<int64_t>(bytes), text);
    }
  }
}

inline void check_pair_loop(Context& context) {
  check_pairs_of<uint8_t>(context, PairLoop::u8);
  check_pairs_of<int16_t>(context, PairLoop::s16);
  check_pairs_of<int32_t>(context, PairLoop::s32);
  check_pairs_of<int64_t>(context, PairLoop::s64);
  check_pairs_of<float>(context, PairLoop::f32);
  check_pairs_of<double>(context, PairLoop::f64);
}

inline float real_number(Random& random) {
  const auto real = static_cast<float>(static_cast<double>(random.between(-4000, 4000)) / 700);
  return real * (random.one_in(10) ? 30.0f : 1.0f);
}

inline void expect_equal_rows(Context& context, bool same, const Exact<float>& out, const Exact<float>& expected,
                              int64_t count, const char* what) {
  char text[80];
  std::snprintf(text, sizeof text, "%s, %lld elements, verdicts equal %d", what, static_cast<long long>(count), same);
  const uint8_t right = 1, found = same;
  context.report.expect_equal(&found, &right, 1, text);
  context.report.expect_equal(reinterpret_cast<const uint8_t*>(out.data()),
                              reinterpret_cast<const uint8_t*>(expected.data()), 4 * count, text);
}

// All 16 bits, and numbers of binary32 of every size.
inline void check_halves(Context& context) {
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(200); ++i) {
    const int64_t count = random.between(1, 200);
    Exact<uint16_t> halves(count), narrowed(count);
    Exact<float> reals(count), widened(count);
    std::vector<float> wide;
    std::vector<uint16_t> narrow;
    bool signalling = false, missing = false;
    for (int64_t k = 0; k < count; ++k) {
      halves[k] = static_cast<uint16_t>(random.between(0, 65535));
      const auto bits = static_cast<uint32_t>(random.between(0, int64_t{UINT32_MAX}));
      std::memcpy(&reals[k], &bits, sizeof bits);
      // A tie, or the number beside it.
      if (random.one_in(2))
        reals[k] =
            std::ldexp(static_cast<float>(random.between(-8192, 8192)), static_cast<int>(random.between(-30, 8)));
      // Only a few, so that most rows have none of them.
      if ((halves[k] & 0x7e00) == 0x7c00 && !random.one_in(8)) halves[k] = 0x7c00;
      signalling = signalling || ((halves[k] & 0x7e00) == 0x7c00 && (halves[k] & 0x1ff) != 0);
      if (reals[k] != reals[k] && !random.one_in(8)) reals[k] = 1;
      missing = missing || reals[k] != reals[k];
      wide.push_back(arithmetic::half_to_float(halves[k]));
      narrow.push_back(arithmetic::float_to_half(reals[k]));
    }
    const bool quiet = context.cores.widen_halves()(halves.data(), widened.data(), count);
    const bool whole = context.cores.narrow_to_halves()(reals.data(), narrowed.data(), count);
    const std::string what = std::to_string(count) + " numbers";
    context.report.expect(whole != missing, what + ": NaNs");
    context.report.expect(quiet != signalling, what + ": signalling NaNs");
    context.report.expect_equal(reinterpret_cast<uint32_t*>(widened.data()), reinterpret_cast<uint32_t*>(wide.data()),
                                count, what);
    context.report.expect_equal(narrowed.data(), narrow.data(), count, what);
  }
}

// One number after the other.
struct OneByOne {
  Exact<float> powers, shares;
  float largest, sum;

  OneByOne(const Exact<float>& in, int64_t count, int lanes) : powers(count), shares(count), largest(in[0]) {
    for (int64_t i = 1; i < count; ++i) largest = std::max(largest, in[i]);
    float lane[16] = {}, half[8];
    for (int64_t i = 0; i < count; ++i) {
      const float apart = in[i] - largest;
      twin::real_function(RealFunction::exp, &apart, &powers[i], 1);
      if (lanes != 16 && std::nearbyint(static_cast<double>(apart) * 0x1.715476p0) < -126) powers[i] = 0.0f;
      if (lanes > 4 || i < count / 4 * 4) lane[i % lanes] += powers[i];
    }
    for (int l = 0; l < 8; ++l) half[l] = lanes <= 8 ? lane[l] : lane[8 + l] + lane[l];
    sum = ((half[0] + half[1]) + (half[2] + half[3])) + ((half[4] + half[5]) + (half[6] + half[7]));
    for (int64_t i = count / 4 * 4; lanes == 4 && i < count; ++i) sum += powers[i];
    for (int64_t i = 0; i < count; ++i) shares[i] = powers[i] * (1.0f / sum);
  }
};

inline void check_softmax_rows(Context& context) {
  Random& random = context.random;
  const SoftmaxRows& core = context.cores.softmax_rows();
  for (int64_t round = 0; round < context.rounds(300); ++round) {
    const int64_t count = random.pick(kCounts);
    Exact<float> in(count), out(count);
    // Some rows far apart, where powers end.
    const float far = random.one_in(3) ? 20.0f : 1.0f;
    for (int64_t i = 0; i < count; ++i) in[i] = random.one_in(50) ? -INFINITY : far * real_number(random);
    in[random.between(0, count - 1)] = real_number(random);
    if (random.one_in(20)) in[random.between(0, count - 1)] = random.one_in(2) ? NAN : INFINITY;
    const int lanes = 4 << random.between(0, 2);
    const OneByOne expected(in, count, lanes);
    const bool defined = expected.sum == expected.sum, in_place = random.one_in(2);
    if (in_place) std::copy(in.data(), in.data() + count, out.data());
    const bool found = core.row(in_place ? out.data() : in.data(), out.data(), count, lanes);
    if (defined) {
      expect_equal_rows(context, found, out, expected.shares, count, "softmax");
      const float largest = core.largest(in.data(), count);
      Exact<float> sums(3), expected_sums(3);
      sums[0] = largest, expected_sums[0] = expected.largest;
      sums[1] = core.powers(in.data(), nullptr, count, largest, lanes), expected_sums[1] = expected.sum;
      sums[2] = core.powers(in.data(), out.data(), count, largest, lanes), expected_sums[2] = expected.sum;
      expect_equal_rows(context, true, out, expected.powers, count, "powers");
      expect_equal_rows(context, true, sums, expected_sums, 3, "sums of powers");
    } else {
      expect_equal_rows(context, !found, out, out, count, "softmax of NaN");
    }
  }
}

inline void check_normalize_rows(Context& context) {
  Random& random = context.random;
  const NormalizeRows core = context.cores.normalize_rows();
  constexpr NormalizeOrder kOrders[] = {NormalizeOrder::lanes, NormalizeOrder::fused_lanes, NormalizeOrder::running,
                                        NormalizeOrder::one_by_one};
  for (int64_t round = 0; round < context.rounds(300); ++round) {
    NormalizeSpec spec;
    spec.order = random.pick(kOrders);
    spec.centred = !random.one_in(3);
    spec.epsilon = 1e-5f;
    spec.count = random.pick(kCounts) + 7;
    const int64_t rows = random.between(1, 40), all = rows * spec.count;
    Exact<float> in(all), out(all), expected(all), scale(spec.count), bias(spec.count);
    Exact<float> means(2 * rows), expected_means(2 * rows);
    for (int64_t i = 0; i < all; ++i) in[i] = real_number(random);
    for (int64_t i = 0; i < spec.count; ++i) scale[i] = real_number(random), bias[i] = real_number(random);
    spec.scale = scale.data();
    spec.bias = random.one_in(3) ? nullptr : bias.data();
    const bool same = twin::normalize_rows(spec, in.data(), rows, expected.data(), expected_means.data(),
                                           expected_means.data() + rows) ==
                      core(spec, in.data(), rows, out.data(), means.data(), means.data() + rows);
    expect_equal_rows(context, same, out, expected, all, "normalized rows");
    expect_equal_rows(context, same, means, expected_means, 2 * rows, "means and inverse deviations");
  }
}

inline void check_quantize_reals(Context& context) {
  Random& random = context.random;
  const QuantizeReals core = context.cores.quantize_reals();
  for (int64_t round = 0; round < context.rounds(400); ++round) {
    QuantizeSpec spec;
    const double exponent = static_cast<double>(random.between(-1000, 300)) / 100;
    spec.scale = static_cast<float>(std::exp2(random.one_in(2) ? std::floor(exponent) : exponent));
    spec.zero_point = static_cast<int32_t>(random.between(0, 255));
    spec.low = static_cast<float>(-spec.zero_point);
    spec.high = static_cast<float>(255 - spec.zero_point);
    spec.multiplies = random.one_in(2);
    if (spec.multiplies && random.one_in(2)) spec.addend = static_cast<float>(random.between(-255, 255));
    const int64_t count = random.pick(kCounts);
    Exact<float> in(count);
    const float strange[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 3e38f, -3e38f, 1e-45f};
    for (int64_t i = 0; i < count; ++i) {
      // Ties, and numbers beside them.
      const float steps = static_cast<float>(random.between(-520, 520)) / 2;
      const float tie = spec.multiplies ? steps / spec.scale : steps * spec.scale;
      in[i] = random.one_in(20)  ? random.pick(strange)
              : random.one_in(3) ? std::nextafterf(tie, random.one_in(2) ? INFINITY : -INFINITY)
                                 : tie;
    }
    std::vector<uint8_t> expected(count);
    for (int64_t i = 0; i < count; ++i) {
      const float steps = spec.multiplies ? std::fma(in[i], spec.scale, spec.addend) : in[i] / spec.scale;
      const float limited = std::isnan(steps) ? spec.low : std::min(std::max(steps, spec.low), spec.high);
      expected[i] = static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(limited)) + spec.zero_point);
    }
    char text[100];
    std::snprintf(text, sizeof text, "%lld elements, scale %a zero point %d", static_cast<long long>(count),
                  static_cast<double>(spec.scale), spec.zero_point);
    Exact<uint8_t> out(count);
    core(spec, in.data(), out.data(), count);
    context.report.expect_equal(out.data(), expected.data(), count, text);
  }
}

inline void check_scale_bytes(Context& context) {
  Random& random = context.random;
  const ScaleBytes core = context.cores.scale_bytes();
  for (int64_t round = 0; round < context.rounds(400); ++round) {
    const int64_t count = random.pick(kCounts);
    Exact<uint8_t> in(count), out(count);
    Exact<float> factors(count), summands(count);
    fill_bytes(random, in);
    std::vector<uint8_t> expected(count);
    for (int64_t i = 0; i < count; ++i) {
      factors[i] = static_cast<float>(random.between(-64, 64)) * (random.one_in(2) ? 0x1p-5f : 0x1.23457p-5f);
      if (random.one_in(20)) factors[i] = 3e35f;
      summands[i] = static_cast<float>(random.between(-300, 300)) / 2;
      const float product = static_cast<float>(in[i] - 128) * factors[i];
      const float whole = std::nearbyint(product + summands[i]);
      expected[i] = static_cast<uint8_t>(static_cast<int32_t>(std::min(std::max(whole, -128.0f), 127.0f)) + 128);
    }
    core(in.data(), factors.data(), summands.data(), out.data(), count);
    context.report.expect_equal(out.data(), expected.data(), count, std::to_string(count) + " bytes");
  }
}

inline void check_gate_sums(Context& context) {
  Random& random = context.random;
  const GateSums core = context.cores.gate_sums();
  const auto number = [&](const rules::Multiplier& by) {
    const int64_t near = int64_t{1} << std::min(std::max(15 - by.exponent, 0), 31);
    const int64_t reach = random.one_in(9) ? int64_t{1} << 31 : near;
    return static_cast<int32_t>(random.between(-reach, reach - 1));
  };
  for (int64_t round = 0; round < context.rounds(400); ++round) {
    rules::Multiplier by[2] = {};
    for (rules::Multiplier& each : by) {
      each.multiplier = random.one_in(9) ? random.pick({int64_t{0}, int64_t{1} << 30, int64_t{INT32_MAX}})
                                         : random.between(int64_t{1} << 30, INT32_MAX);
      each.exponent = static_cast<int>(random.one_in(5) ? random.between(-31, 31) : random.between(-12, 2));
    }
    const int64_t count = random.pick(kCounts);
    Exact<int32_t> first(count), second(count);
    Exact<int16_t> out(count);
    std::vector<int16_t> expected(count);
    const auto clamp = [](int64_t x) { return std::min<int64_t>(std::max<int64_t>(x, INT16_MIN), INT16_MAX); };
    for (int64_t i = 0; i < count; ++i) {
      first[i] = number(by[0]), second[i] = number(by[1]);
      const int64_t sum =
          clamp(rules::q31_two_step_up_away(first[i], by[0])) + rules::q31_two_step_up_away(second[i], by[1]);
      expected[i] = static_cast<int16_t>(clamp(arithmetic::wrap_s32(sum)));
    }
    core(by[0], by[1], first.data(), second.data(), out.data(), count);
    context.report.expect_equal(reinterpret_cast<const uint8_t*>(out.data()),
                                reinterpret_cast<const uint8_t*>(expected.data()), 2 * count,
                                std::to_string(count) + " sums");
  }
}

inline void check_layer_sums(Context& context) {
  Random& random = context.random;
  const LayerSums core = context.cores.layer_sums();
  for (int64_t round = 0; round < context.rounds(400); ++round) {
    LayerSumSpec spec;
    const bool is_signed = random.one_in(2);
    spec.other_flip = is_signed ? 128 : 0;
    spec.out_flip = random.one_in(2) ? 128 : 0;
    spec.low = is_signed && !random.one_in(3) ? -128.0f : 0.0f;
    spec.high = is_signed ? 127.0f : 255.0f;
    spec.start = random.one_in(2) ? 0.0f : -INFINITY;
    spec.factor = static_cast<float>(random.between(1, 64)) * (random.one_in(2) ? 0x1p-5f : 0x1.23457p-5f);
    const int64_t count = random.pick(kCounts);
    Exact<int32_t> acc(count);
    Exact<float> bias(count), factors(count);
    Exact<uint8_t> other(count), out(count);
    fill_bytes(random, other);
    std::vector<uint8_t> expected(count);
    for (int64_t i = 0; i < count; ++i) {
      acc[i] =
          static_cast<int32_t>(random.one_in(9) ? random.between(INT32_MIN, INT32_MAX) : random.between(-4000, 4000));
      bias[i] = static_cast<float>(random.between(-4000, 4000));
      factors[i] = random.one_in(20)  ? 3e38f
                   : random.one_in(3) ? 0x1p-4f
                                      : std::nextafterf(0x1p-4f, random.one_in(2) ? INFINITY : 0.0f);
      const float sum = static_cast<float>(acc[i]) + bias[i];
      const float value = std::max(sum * factors[i], spec.start);
      const float whole = std::nearbyint(std::fma(static_cast<float>(other[i] - spec.other_flip), spec.factor, value));
      const float limited = std::min(std::max(whole, spec.low), spec.high);
      expected[i] = static_cast<uint8_t>(static_cast<int32_t>(limited) + spec.out_flip);
    }
    core(spec, acc.data(), bias.data(), factors.data(), other.data(), out.data(), count);
    context.report.expect_equal(out.data(), expected.data(), count, std::to_string(count) + " sums");
  }
}

inline void check_byte_product(Context& context, const ByteProduct& core, bool pairs) {
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(400); ++i) {
    const int64_t width = core.lanes * random.between(1, core.vectors), count = random.between(1, 27);
    const int64_t depth = random.one_in(20) ? 4 * random.between(500, 3000) : 4 * random.between(1, 20);
    const int64_t row_step = depth + random.between(0, 5), stride = width + random.between(0, 3);
    Exact<uint8_t> in((count - 1) * row_step + depth), panel(depth * width);
    fill_bytes(random, in);
    fill_bytes(random, panel);
    Exact<int32_t> sums((count - 1) * stride + width);
    std::vector<int32_t> expected(sums.count());
    for (int64_t n = 0; n < sums.count(); ++n) sums[n] = expected[n] = 77;
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t n = 0; n < width; ++n) {
        int32_t sum = 0;
        const auto product = [&](int64_t k) {
          return in[r * row_step + k] * static_cast<int8_t>(panel[(k / 4 * width + n) * 4 + k % 4]);
        };
        for (int64_t k = 0; k < depth; k += 2) {
          const int32_t pair = product(k) + product(k + 1);
          sum += pairs ? std::clamp(pair, -32768, 32767) : pair;
        }
        expected[r * stride + n] = sum;
      }
    }
    ByteRows rows;
    rows.rows = in.data();
    rows.row_step = row_step;
    rows.count = count;
    rows.depth = depth;
    rows.sums = sums.data();
    rows.stride = stride;
    core.run(rows, reinterpret_cast<const int8_t*>(panel.data()), width);
    context.report.expect_equal(
        sums.data(), expected.data(), sums.count(),
        std::to_string(count) + " rows, " + std::to_string(depth) + " by " + std::to_string(width));
  }
}

// Columns where they lie, less 128.
inline void check_columns_in_place(Context& context, const ByteProduct& core) {
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(200); ++i) {
    const int64_t width = random.between(1, core.lanes * core.vectors), count = random.between(1, 9);
    const int64_t depth = random.between(1, 90), row_step = (depth + 3) / 4 * 4, stride = width + random.between(0, 3);
    const int64_t step = width + random.between(0, 80);
    Exact<uint8_t> in(count * row_step), matrix((depth - 1) * step + width);
    fill_bytes(random, in);
    fill_bytes(random, matrix);
    Exact<int32_t> sums((count - 1) * stride + width);
    std::vector<int32_t> expected(sums.count());
    for (int64_t n = 0; n < sums.count(); ++n) sums[n] = expected[n] = 77;
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t n = 0; n < width; ++n) {
        expected[r * stride + n] = 0;
        for (int64_t k = 0; k < depth; ++k) {
          expected[r * stride + n] += in[r * row_step + k] * (matrix[k * step + n] - 128);
        }
      }
    }
    ByteRows rows;
    rows.rows = in.data();
    rows.row_step = row_step;
    rows.count = count;
    rows.depth = depth;
    rows.sums = sums.data();
    rows.stride = stride;
    core.run_in_place(rows, matrix.data(), step, width);
    context.report.expect_equal(
        sums.data(), expected.data(), sums.count(),
        std::to_string(count) + " rows, " + std::to_string(depth) + " by " + std::to_string(width) + " in place");
  }
}

inline void check_byte_product(Context& context) {
  check_byte_product(context, context.cores.byte_product(), false);
  if (context.cores.byte_product().run_in_place != nullptr) {
    check_columns_in_place(context, context.cores.byte_product());
  }
}
inline void check_pair_product(Context& context) { check_byte_product(context, context.cores.pair_product(), true); }

// A number of 4 or 8 bits: low half-bytes are the first of two, or bytes follow after 64.
inline int block_number(const Exact<uint8_t>& numbers, bool bytes, int64_t step, int64_t lane, int64_t column,
                        int64_t d) {
  const int64_t place = (step * 4 + lane) * (bytes ? 128 : 64) + 4 * column + d % 4;
  if (bytes) return numbers[place + (d < 4 ? 0 : 64)];
  return d < 4 ? numbers[place] & 15 : numbers[place] >> 4;
}

// One number of `lanes` values, as BlockRows says.
inline float fold_block_lanes(std::vector<float> lanes, bool crossed, bool by_fours) {
  for (size_t i = 0; crossed && i < lanes.size(); i += 4) std::swap(lanes[i + 1], lanes[i + 2]);
  if (by_fours) {
    for (size_t i = 0; i < lanes.size(); i += 4)
      lanes[i / 4] = ((lanes[i] + lanes[i + 1]) + lanes[i + 2]) + lanes[i + 3];
    lanes.resize(lanes.size() / 4);
  }
  for (size_t left = lanes.size() / 2; left > 0; left /= 2) {
    for (size_t i = 0; i < left; ++i) lanes[i] = lanes[i] + lanes[i + left];
  }
  return lanes[0];
}

inline void check_block_rows(Context& context, const BlockProduct& core, bool bytes) {
  Random& random = context.random;
  const bool pointed = !bytes && random.one_in(4);
  const int64_t count = pointed ? 1 : random.between(1, 11), blocks = random.between(1, 6),
                used = random.between(1, 16);
  std::vector<BlockPart> parts(static_cast<size_t>(random.between(4, 8)));
  int64_t steps = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    BlockPart& part = parts[i];
    part.steps = random.between(0, 3);
    steps += part.steps;
    // The first ones fill all slots.
    part.to = static_cast<int>(i < 5 ? i : random.between(0, 4));
    if (i < 5) continue;
    part.from = static_cast<int>(random.between(-1, 4));
    part.then = static_cast<BlockPart::Then>(random.between(0, 2));
  }
  const int lanes = parts.size() < 5 || random.one_in(2) ? 8 : 16;
  const int64_t row_step = 32 * steps + random.between(0, 3), out_step = used + random.between(0, 3);
  Exact<uint8_t> in((count - 1) * row_step + 32 * steps + 1), numbers(steps * (bytes ? 512 : 256) + 1);
  fill_bytes(random, in);
  fill_bytes(random, numbers);
  Exact<float> row_scales(count * blocks), row_sums(count * blocks), scales(blocks * 16), moved(blocks * 16), bias(16);
  Exact<float> out((count - 1) * out_step + used);
  for (Exact<float>* reals : {&row_scales, &row_sums, &scales, &moved, &bias, &out}) fill_reals(random, *reals);
  Exact<float> lane_sums(4 * steps + 1);
  for (int64_t i = 0; i < lane_sums.count(); ++i) lane_sums[i] = static_cast<float>(random.between(-1016, 1016));
  for (int64_t i = 0; pointed && i < moved.count(); ++i) moved[i] = static_cast<float>(random.between(0, 15));
  std::vector<int32_t> which(2 * steps + 1);
  for (int32_t& block : which) block = static_cast<int32_t>(random.between(0, blocks - 1));
  BlockRows rows;
  rows.rows = reinterpret_cast<const int8_t*>(in.data());
  rows.row_step = row_step;
  rows.count = count;
  rows.scales = row_scales.data();
  rows.row_sums = row_sums.data();
  rows.lane_sums = pointed ? lane_sums.data() : nullptr;
  rows.blocks = blocks;
  rows.step_blocks = which.data();
  rows.parts = parts.data();
  rows.part_count = static_cast<int64_t>(parts.size());
  rows.lanes = lanes;
  rows.crossed = random.one_in(2);
  rows.by_halves = random.between(0, count);
  rows.by_fours = random.between(0, 16);
  rows.bias = random.one_in(2) ? bias.data() : nullptr;
  rows.out = out.data();
  rows.out_step = out_step;
  rows.used = used;
  std::vector<float> expected(out.data(), out.data() + out.count());
  bool finite = true;
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t n = 0; n < used; ++n) {
      std::vector<float> slots(20);
      int64_t t = 0;
      for (const BlockPart& part : parts) {
        float sums[4] = {};
        for (int lane = 0; lane < 4; ++lane) {
          if (part.from >= 0) sums[lane] = slots[4 * part.from + lane];
          for (int64_t step = t; step < t + part.steps; ++step) {
            int32_t dot = 0;
            for (int64_t d = 0; d < 8; ++d) {
              dot += static_cast<int8_t>(in[r * row_step + 32 * step + 8 * lane + d]) *
                     block_number(numbers, bytes, step, lane, n, d);
            }
            const int64_t block = which[2 * step + lane / 2];
            if (pointed) dot -= static_cast<int32_t>(lane_sums[4 * step + lane] * moved[block * 16 + n]);
            sums[lane] =
                std::fma(static_cast<float>(dot), row_scales[r * blocks + block] * scales[block * 16 + n], sums[lane]);
          }
        }
        for (int lane = 0; lane < 4; ++lane) {
          float& slot = slots[4 * part.to + lane];
          const float spare = slots[4 * BlockPart::kSpare + lane];
          if (part.then == BlockPart::Then::keep) slot = sums[lane];
          if (part.then == BlockPart::Then::add) slot = slot + sums[lane];
          if (part.then == BlockPart::Then::add_with_spare) slot = slot + (spare + sums[lane]);
        }
        t += part.steps;
      }
      float last = 0;
      for (int64_t b = 0; b < blocks; ++b) last = std::fma(row_sums[r * blocks + b], moved[b * 16 + n], last);
      slots.resize(static_cast<size_t>(lanes));
      float value = fold_block_lanes(slots, rows.crossed, r >= rows.by_halves && n < rows.by_fours);
      if (rows.bias != nullptr) value = value + bias[n];
      if (!pointed) value = value + last;
      finite &= std::isfinite(value);
      expected[r * out_step + n] = value;
    }
  }
  const bool told = (bytes ? core.run_8 : core.run_4)(rows, numbers.data(), scales.data(), moved.data());
  const std::string text = std::to_string(count) + " rows, " + std::to_string(steps) + " steps";
  const uint8_t right = finite, answer = told;
  // Columns that nobody uses may overflow.
  if (!finite || used == 16) context.report.expect_equal(&answer, &right, 1, text + ", finite");
  if (finite) context.report.expect_equal(out.data(), expected.data(), out.count(), text);
}

inline void check_block_reals(Context& context, const BlockProduct& core) {
  Random& random = context.random;
  const int64_t length = 16 * random.between(1, 4), terms = random.between(1, 150);
  const int64_t blocks = (terms + length - 1) / length;
  Exact<uint8_t> numbers((terms + 1) / 2 * 16);
  fill_bytes(random, numbers);
  Exact<float> row(terms), scales(blocks * 16), points(blocks * 16), sums(256), out(terms * 16);
  fill_reals(random, row);
  fill_reals(random, scales);
  fill_reals(random, sums);
  const int lanes = random.between(0, 1) == 0 ? 8 : 16;
  for (int64_t i = 0; i < points.count(); ++i) points[i] = static_cast<float>(random.between(0, 15));
  std::vector<float> expected(sums.data(), sums.data() + 256), unpacked(terms * 16);
  for (int64_t i = 0; i < terms * 16; ++i) {
    const int64_t k = i / 16, n = i % 16, at = k / length * 16 + n;
    const int number = numbers[k / 2 * 16 + n] >> (k % 2 * 4) & 15;
    unpacked[i] = (static_cast<float>(number) - points[at]) * scales[at];
    float& sum = expected[k % lanes * 16 + n];
    sum = std::fma(row[k], unpacked[i], sum);
  }
  core.run_row(row.data(), terms, length, lanes, numbers.data(), scales.data(), points.data(), sums.data());
  const std::string text =
      std::to_string(terms) + " terms in blocks of " + std::to_string(length) + ", " + std::to_string(lanes) + " lanes";
  context.report.expect_equal(sums.data(), expected.data(), 256, text);
  const int64_t first = std::min(length, terms);
  core.unpack(first, numbers.data(), scales.data(), points.data(), out.data());
  context.report.expect_equal(out.data(), unpacked.data(), first * 16, text + ", unpacked");
}

inline void check_block_folds(Context& context, const BlockProduct& core) {
  const int64_t by_fours = context.random.between(0, 16);
  const int count = context.random.between(0, 1) == 0 ? 8 : 16;
  Exact<float> lanes(256), out(16);
  fill_reals(context.random, lanes);
  std::vector<float> expected;
  for (int64_t n = 0; n < 16; ++n) {
    std::vector<float> column;
    for (int i = 0; i < count; ++i) column.push_back(lanes[16 * i + n]);
    expected.push_back(fold_block_lanes(column, count == 8 && n >= by_fours, n < by_fours));
  }
  core.fold(lanes.data(), count, by_fours, out.data());
  context.report.expect_equal(out.data(), expected.data(), 16, std::to_string(by_fours) + " by fours");
}

inline void check_block_product(Context& context) {
  const BlockProduct& core = context.cores.block_product();
  for (int64_t i = 0; i < context.rounds(200); ++i) {
    check_block_rows(context, core, false);
    check_block_rows(context, core, true);
    check_block_reals(context, core);
    check_block_folds(context, core);
  }
}

}  // namespace bittrue::test
