// Sums of two scaled operands by two multiply-adds in binary32, for sets whose vectors pack and unpack within lanes of 16
// bytes. BITTRUE_ISA is their namespace; `Wide` is a register as <isa>/vectors.h has it.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::BITTRUE_ISA {

template <class Wide, bool is_signed>
class FusedSum final : public Elementwise {
 public:
  explicit FusedSum(const FusedSumSpec& spec)
      : first_scale_(spec.first_scale), second_scale_(spec.second_scale), addend_(spec.addend) {}

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    int64_t i = 0;
    for (; i + Wide::kBytes <= count; i += Wide::kBytes) {
      Wide::store(out + i, sum(Wide::load(first + i), Wide::load(second + i)));
    }
    if (i == count) return;
    const int64_t rest = count - i;
    Wide::store(out + i, sum(Wide::load(first + i, rest), Wide::load(second + i, rest)), rest);
  }

 private:
  using Integers = typename Wide::Integers;
  using Reals = typename Wide::Reals;

  // Byte 4 * k + j of every lane as the 32-bit word j of that lane: what packing twice puts back in order. Signed bytes
  // come into the highest byte of their word first.
  template <int k>
  static Reals words(Integers bytes) {
    const auto place = [](unsigned j) {
      return static_cast<int>(is_signed ? 0x00808080u | (4u * k + j) << 24 : 0x80808000u | (4u * k + j));
    };
    const Integers spread = Wide::shuffle(bytes, place(0), place(1), place(2), place(3));
    return Wide::to_reals(is_signed ? Wide::highest_byte(spread) : spread);
  }

  template <int k>
  Integers quarter(Integers a, Integers b) const {
    const Reals inner = Wide::multiply_add(words<k>(b), Wide::reals(second_scale_), Wide::reals(addend_));
    return Wide::round(Wide::multiply_add(words<k>(a), Wide::reals(first_scale_), inner));
  }

  Integers sum(Integers a, Integers b) const {
    const Integers flip = Wide::bytes(-128);
    if (is_signed) {
      a ^= flip;
      b ^= flip;
    }
    const Integers low = Wide::pack(quarter<0>(a, b), quarter<1>(a, b));
    const Integers high = Wide::pack(quarter<2>(a, b), quarter<3>(a, b));
    return is_signed ? Wide::pack_signed(low, high) ^ flip : Wide::pack_unsigned(low, high);
  }

  float first_scale_, second_scale_, addend_;
};

template <class Wide>
std::unique_ptr<Elementwise> make_wide_fused_sum(const FusedSumSpec& spec) {
  if (spec.is_signed) return std::make_unique<FusedSum<Wide, true>>(spec);
  return std::make_unique<FusedSum<Wide, false>>(spec);
}

}  // namespace bittrue::BITTRUE_ISA
