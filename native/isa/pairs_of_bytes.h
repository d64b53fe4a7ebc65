// Functions of two bytes in binary32, for sets whose vectors pack and unpack within lanes of 16 bytes. BITTRUE_ISA is their namespace; `Wide` is a register as <isa>/vectors.h has it.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::BITTRUE_ISA {

// Sums of two scaled operands by two multiply-adds.
template <class Wide>
typename Wide::Reals combined(const FusedSumSpec& spec, typename Wide::Reals a, typename Wide::Reals b) {
  const auto inner = Wide::multiply_add(b, Wide::reals(spec.second_scale), Wide::reals(spec.addend));
  return Wide::multiply_add(a, Wide::reals(spec.first_scale), inner);
}

// The same in units of the result.
struct RescaledSumSpec : FusedSumSpec {};

template <class Wide>
typename Wide::Reals combined(const RescaledSumSpec& spec, typename Wide::Reals a, typename Wide::Reals b) {
  const auto sum = combined<Wide>(static_cast<const FusedSumSpec&>(spec), a, b);
  return Wide::multiply_add(sum, Wide::reals(spec.factor), Wide::reals(spec.zero_point));
}

// Differences from zero points have exact products.
template <class Wide>
typename Wide::Reals combined(const ScaledProductSpec& spec, typename Wide::Reals a, typename Wide::Reals b) {
  const auto product = (a - Wide::reals(spec.first_zero_point)) * (b - Wide::reals(spec.second_zero_point));
  return product * Wide::reals(spec.factor) + Wide::reals(spec.zero_point);
}

template <class Wide, bool is_signed, class Spec>
class PairsOfBytes final : public Elementwise {
 public:
  explicit PairsOfBytes(const Spec& spec) : spec_(spec) {}

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    int64_t i = 0;
    for (; i + Wide::kBytes <= count; i += Wide::kBytes) {
      Wide::store(out + i, stored(Wide::load(first + i), Wide::load(second + i)));
    }
    if (i == count) return;
    const int64_t rest = count - i;
    Wide::store(out + i, stored(Wide::load(first + i, rest), Wide::load(second + i, rest)), rest);
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
    return Wide::round(combined<Wide>(spec_, words<k>(a), words<k>(b)));
  }

  Integers stored(Integers a, Integers b) const {
    const Integers flip = Wide::bytes(-128);
    if (is_signed) {
      a ^= flip;
      b ^= flip;
    }
    const Integers low = Wide::pack(quarter<0>(a, b), quarter<1>(a, b));
    const Integers high = Wide::pack(quarter<2>(a, b), quarter<3>(a, b));
    return is_signed ? Wide::pack_signed(low, high) ^ flip : Wide::pack_unsigned(low, high);
  }

  Spec spec_;
};

template <class Wide, class Spec>
std::unique_ptr<Elementwise> make_pairs_of_bytes(const Spec& spec) {
  if (spec.is_signed) return std::make_unique<PairsOfBytes<Wide, true, Spec>>(spec);
  return std::make_unique<PairsOfBytes<Wide, false, Spec>>(spec);
}

template <class Wide>
std::unique_ptr<Elementwise> make_fused_sum_of(const FusedSumSpec& spec) {
  if (spec.factor == 1 && spec.zero_point == 0) return make_pairs_of_bytes<Wide>(spec);
  return make_pairs_of_bytes<Wide>(RescaledSumSpec{spec});
}

}  // namespace bittrue::BITTRUE_ISA
