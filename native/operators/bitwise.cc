// bitwise_xor and right_shift: integers bit by bit.
#include <algorithm>

#include "operators/zip.h"

namespace bittrue {
namespace {

// 8-bit integers are stored unsigned; `flip` leads back to the plan's own value.
template <class Stored, class T>
std::unique_ptr<Kernel> make_shift(const Step& step, int flip) {
  return make_zip<Stored, Stored>(step, [flip](Stored a, Stored b) {
    const auto x = static_cast<T>(a - flip), places = static_cast<T>(b - flip);
    constexpr int kMost = 8 * sizeof(T) - 1;
    const int shift = places < 0 ? 0 : static_cast<int>(std::min<int64_t>(places, kMost));
    return static_cast<Stored>((x >> shift) + flip);
  });
}

template <class Stored>
std::unique_ptr<Kernel> make_xor(const Step& step, int flip) {
  // Flipping adds half the range, which is the highest bit.
  const auto bit = static_cast<Stored>(flip);
  return make_zip<Stored, Stored>(step, [bit](Stored a, Stored b) { return static_cast<Stored>(a ^ b ^ bit); });
}

}  // namespace

std::unique_ptr<Kernel> make_bitwise_xor(const Step& step, const CoreSet&) {
  const Type type = step.input(0).type;
  if (step.output().type != type) return nullptr;
  switch (type) {
    case Type::s8: case Type::u8: return make_xor<uint8_t>(step, flip_of(type));
    case Type::s16: case Type::u16: return make_xor<uint16_t>(step, 0);
    case Type::s32: case Type::u32: return make_xor<uint32_t>(step, 0);
    default: return nullptr;
  }
}

std::unique_ptr<Kernel> make_right_shift(const Step& step, const CoreSet&) {
  const Type type = step.input(0).type;
  if (step.output().type != type) return nullptr;
  switch (type) {
    case Type::s8: return make_shift<uint8_t, int8_t>(step, flip_of(type));
    case Type::u8: return make_shift<uint8_t, uint8_t>(step, 0);
    case Type::s16: return make_shift<int16_t, int16_t>(step, 0);
    case Type::u16: return make_shift<uint16_t, uint16_t>(step, 0);
    case Type::s32: return make_shift<int32_t, int32_t>(step, 0);
    case Type::u32: return make_shift<uint32_t, uint32_t>(step, 0);
    default: return nullptr;
  }
}

}  // namespace bittrue
