// Twins of src/bittrue/arithmetic/processor_estimates.py.
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic/fused.h"

namespace bittrue::arithmetic::estimates {

// Codes are characters: ']' is 0, 'a' is 4.
inline int32_t code(char c) { return c - ']'; }

// RSQRT14PS: values and falls of 32 lines for x from 1 and from 2 on.
struct Lines {
  Lines() {
    constexpr const char* kAbove[2] = {"sspomlmjjjhihigfeedddfdcbdddddcc", "nnkkjihjggfefeefc`bcbccbcbbcbcba"};
    for (int from_two = 0; from_two < 2; ++from_two) {
      for (int i = 0; i < 32; ++i) {
        const double middle = (1 + (i + 0.5) / 32) * (1 + from_two);
        value[from_two][i] = static_cast<int32_t>(std::floor(0x1p19 / std::sqrt(middle))) + code(kAbove[from_two][i]);
        fall[from_two][i] =
            2 * static_cast<int32_t>(std::floor(512 * (1.0 + from_two) / (middle * std::sqrt(middle)))) + 1;
      }
    }
  }

  // The significand, whose unit is 2^-17.
  int32_t operator()(uint32_t bits) const {
    const uint32_t from_two = 1 - (bits >> 23 & 1), place = bits >> 8 & 0x7FFF, line = place >> 10;
    if (from_two == 0 && (bits & 0x7FFFFF) == 0) return 1 << 17;
    const auto beside = static_cast<int32_t>(place) - static_cast<int32_t>((2 * line + 1) * 512);
    return (value[from_two][line] * 128 - fall[from_two][line] * beside) >> 9;
  }
  static constexpr int kBits = 17;

  int32_t value[2][32], fall[2][32];
};

// first - step: `first` by the upper 8 of 12 bits, `step` by the upper 4 and the lower 4.
struct TwoTables {
  TwoTables(int32_t first, const char* falls, const char* steps) {
    for (int i = 0; i < 256; ++i) {
      if (i > 0) first -= code(falls[i - 1]);
      from[i] = static_cast<int16_t>(first);
    }
    for (int row = 0; row < 16; ++row) {
      int16_t sum = 0;
      for (int i = 0; i < 16; ++i) {
        if (i > 0) sum = static_cast<int16_t>(sum + code(steps[15 * row + i - 1]));
        step[16 * row + i] = sum;
      }
    }
  }
  // 13 bits for 12.
  int32_t look_up(uint32_t place) const { return from[place >> 4] - step[place >> 8 << 4 | (place & 15)]; }

  int16_t from[256], step[256];
};

// RSQRTPS of AMD's processors.
struct Tables {
  // The significand, whose unit is 2^-13.
  int32_t operator()(uint32_t bits) const { return (bits >> 23 & 1 ? even : odd).look_up(bits >> 11 & 0xFFF); }
  static constexpr int kBits = 13;

  TwoTables even{8191,
                 "mmlmmllmllllllkllklkkkkkkkkkjkjkjkjjjjjjjijjijijijiiiiiiihiihihjhhihhhhhhhhhhghhghghghggghgggggggggg"
                 "fggfgfgfgffgffgfffffffffeffeffefefefefeefeefeeeeeeeeeeeedeeeedeedededededdeddddedddddddddddeddcddddc"
                 "ddcddcdcdcdcdcdccdccdccdccccccdcccccccccccccbccccbcccbc",
                 "^^^^^^^]^^^^^^^^^^]^^^^^^^]^^^^^]^^^^]^^^^^]^^^]^^]^^^]^^^]^]^^]^^^]^^]^^]^^]^^]^^]^]^^]^^]^^]^]^]^^"
                 "]^^]^]^]^]^^]^]^]^^]^]^]^]^]^]^]^]^]^]^]^]^]^]^]^]]^]^]^]]^]^]^]^^]^]]^]^]^]^]]^]^]]^]^]]^]^]^]]^]^]"
                 "]^]^]]^]]^]^]]^]^]]^]^]]^]]^]]^]^]]^]]^]"};
  TwoTables odd{5792,
                "hhihghhhhghhghghgghgggggfgggfgfggffgffffffffffffeffefefeefeefeeeeeeeeeeeedeedededededdedddeddddddddd"
                "dddcdddcddcdcdcdcdccdccdcccdccccccccccccccbcccbcccbcbccbcbcbbcbcbbcbbcbbbbcbbbbbbbbbbbbbbbbcabbbbbab"
                "bbabbabbababbababababaababaabaabaaabaaabaaaaaabaaaaaaaa",
                "^]^^]^^]^^]^^]^]^^]^]^^]^^]^^]]^^]^]^]^^]^]^]]^^]^]^]^]^]^]^]^]^]^]^]^]^]^]^]]^]^]^]^]^]]^]^]^]]^]^]"
                "^]]^]]^]^]]^]^]]^]^]]]^]^]]^]]^]^]]]^]]^]]^]]^]]^]]^]]^]]^]]^]]^]^]]^]]^]]^]]]^]]]^]]^]]]^]]^]]]]^]]"
                "^]]]^]]^]]]^]]]^]]]^]]]^]]^]]]^]]]^]]]^]"};
};

// RCPPS of AMD's processors, for 1 <= x <= 2.
struct Inverse {
  float operator()(float x) const {
    const uint32_t bits = fused::bits(x);
    const auto found = static_cast<float>(table.look_up(bits >> 11 & 0xFFF));
    return found * (bits >> 23 == 128 ? 0x1p-14f : 0x1p-13f);
  }

  TwoTables table{8190,
                  "}|}{||{{{{zzzzz{yyxyxxxxxwwwwwvxvvvuvuuuututtttustsssssrsrrrrrqsqqqqqqpqpqppppopopoooooonononnnonmnn"
                  "mmnmmmmmlmmmlmlllllllklklklkklkjkkkjkkjjkjjkjjjijjjijijiijiiiiiiiihiihihihhihhhhhhhhhhghghhhgghggggh"
                  "gggfggggfggfgfgfgfffgffgfffffeffffeffefefefeefeeefeeeee",
                  "_^_______^_____^__^__^__^__^__^_^^_^_^_^_^_^_^^_^^_^^_^^_^^_^^^^_^^^_^^^^_^^^_^^^^^^^^_^^^^^^^^^^^^^"
                  "^^^^^^^^^^]^^^^^^^^^^^]^^^^^^]^^^^^^]^^^^]^^^^]^^^^^]^^]^^^]^^^]^^]^^]^^]^^]^^]^]^^]^]^^]^^]^]^]^^]^"
                  "]^^]^]^^]^]^]^]^]^^]^]^]^]^]^]^^]^]^]^]^"};
};

// The estimate of 1 / sqrt(x), x flushed.
template <class Significand>
inline float inverse_root(float x, const Significand& significand) {
  const uint32_t bits = fused::bits(x);
  if (x != x) return x + x;
  if (x == 0.0f) return fused::from_bits(bits | 0x7F800000);
  if (bits >> 31) return fused::from_bits(0xFFC00000);
  if (bits == 0x7F800000) return 0.0f;
  const auto scale = (static_cast<int32_t>(bits >> 23) - 127) >> 1;
  const auto power = static_cast<uint32_t>(127 - Significand::kBits - scale) << 23;
  return static_cast<float>(significand(bits)) * fused::from_bits(power);
}

// e + (e / 2) (1 - x (e e)); zeros give NaN.
template <class Significand>
inline float refined_inverse_root(float x, const Significand& significand) {
  x = fused::flush(x);
  if (x != x) return x + x;
  if (!(x > 0.0f)) return fused::from_bits(0xFFC00000);
  const float e = inverse_root(x, significand);
  if (e == 0.0f) return 0.0f;
  return e + e * 0.5f * (1.0f - x * fused::flush(e * e));
}

// x times that; zeros, infinity and NaN stay.
template <class Significand>
inline float refined_root(float x, const Significand& significand) {
  x = fused::flush(x);
  if (x == 0.0f || x == fused::from_bits(0x7F800000)) return x;
  if (x != x) return x + x;
  return x > 0.0f ? x * refined_inverse_root(x, significand) : fused::from_bits(0xFFC00000);
}

}  // namespace bittrue::arithmetic::estimates
