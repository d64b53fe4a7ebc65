// bitwise_and, bitwise_or, bitwise_not, bitwise_xor and shift: integers and truth values bit by bit.
#include <algorithm>

#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/core/zip.h"

namespace bittrue {
namespace {

// 8-bit integers are stored unsigned; `flip` leads back to the plan's own value. It is half the range: the highest bit.
template <class Stored, class T>
std::unique_ptr<Kernel> make_shifted(const Step& step, int flip, bool clamped) {
  if (step.integer("up", 0, 1) != 0) {
    return make_zip<Stored, Stored>(step, [flip, clamped](Stored a, Stored b) {
      const auto x = static_cast<T>(a - flip), places = static_cast<T>(b - flip);
      constexpr int kMost = 8 * sizeof(T) - 1;
      const bool beyond = places < 0 || static_cast<int64_t>(places) > kMost;
      const int shift = places < 0 ? 0 : static_cast<int>(std::min<int64_t>(places, kMost));
      return static_cast<Stored>(beyond && !clamped ? static_cast<uint64_t>(flip)
                                                    : (static_cast<uint64_t>(x) << shift) + flip);
    });
  }
  return make_zip<Stored, Stored>(step, [flip, clamped](Stored a, Stored b) {
    const auto x = static_cast<T>(a - flip), places = static_cast<T>(b - flip);
    constexpr int kMost = 8 * sizeof(T) - 1;
    const bool beyond = places < 0 || static_cast<int64_t>(places) > kMost;
    if (beyond && !clamped) return static_cast<Stored>((x < 0 ? -1 : 0) + flip);
    const int shift = places < 0 ? 0 : static_cast<int>(std::min<int64_t>(places, kMost));
    return static_cast<Stored>((x >> shift) + flip);
  });
}

template <class Stored, class Operation>
std::unique_ptr<Kernel> make_words(const Step& step, int flip, Operation operation) {
  const auto bit = static_cast<Stored>(flip);
  return make_zip<Stored, Stored>(step, [bit, operation](Stored a, Stored b) {
    return static_cast<Stored>(operation(static_cast<Stored>(a ^ bit), static_cast<Stored>(b ^ bit)) ^ bit);
  });
}

// What a truth value's byte becomes that is neither 0 nor 1 shows.
template <class Operation>
std::unique_ptr<Kernel> make_bitwise(const Step& step, Operation operation) {
  const Type type = step.input(0).type;
  if (step.input(1).type != type || step.output().type != type) return nullptr;
  switch (type) {
    case Type::boolean:
    case Type::s8:
    case Type::u8: return make_words<uint8_t>(step, flip_of(type), operation);
    case Type::s16:
    case Type::u16: return make_words<uint16_t>(step, 0, operation);
    case Type::s32:
    case Type::u32: return make_words<uint32_t>(step, 0, operation);
    default: return nullptr;
  }
}

template <class Stored>
std::unique_ptr<Kernel> make_not(const Step& step, Stored bits) {
  return make_map<Stored, Stored>(step, [bits](Stored a) { return static_cast<Stored>(a ^ bits); });
}

std::unique_ptr<Kernel> make_bitwise_and(const Step& step, const CoreSet&) {
  return make_bitwise(step, [](auto a, auto b) { return a & b; });
}

std::unique_ptr<Kernel> make_bitwise_or(const Step& step, const CoreSet&) {
  return make_bitwise(step, [](auto a, auto b) { return a | b; });
}

std::unique_ptr<Kernel> make_bitwise_xor(const Step& step, const CoreSet&) {
  return make_bitwise(step, [](auto a, auto b) { return a ^ b; });
}

std::unique_ptr<Kernel> make_bitwise_not(const Step& step, const CoreSet&) {
  const Type type = step.input(0).type;
  if (step.output().type != type) return nullptr;
  switch (type) {
    case Type::boolean: return make_not<uint8_t>(step, 1);
    case Type::s8:
    case Type::u8: return make_not<uint8_t>(step, 0xFF);
    case Type::s16:
    case Type::u16: return make_not<uint16_t>(step, 0xFFFF);
    case Type::s32:
    case Type::u32: return make_not<uint32_t>(step, 0xFFFFFFFF);
    default: return nullptr;
  }
}

std::unique_ptr<Kernel> make_shift(const Step& step, const CoreSet&) {
  const Type type = step.input(0).type;
  if (step.input(1).type != type || step.output().type != type) return nullptr;
  const bool clamped = step.rule("shift") == "places_clamped";
  if (!clamped && step.rule("shift") != "nothing_beyond") return nullptr;
  switch (type) {
    case Type::s8: return make_shifted<uint8_t, int8_t>(step, flip_of(type), clamped);
    case Type::u8: return make_shifted<uint8_t, uint8_t>(step, 0, clamped);
    case Type::s16: return make_shifted<int16_t, int16_t>(step, 0, clamped);
    case Type::u16: return make_shifted<uint16_t, uint16_t>(step, 0, clamped);
    case Type::s32: return make_shifted<int32_t, int32_t>(step, 0, clamped);
    case Type::u32: return make_shifted<uint32_t, uint32_t>(step, 0, clamped);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(bitwise_and, make_bitwise_and)
BITTRUE_OPERATOR(bitwise_not, make_bitwise_not)
BITTRUE_OPERATOR(bitwise_or, make_bitwise_or)
BITTRUE_OPERATOR(bitwise_xor, make_bitwise_xor)
BITTRUE_OPERATOR(shift, make_shift)

}  // namespace
}  // namespace bittrue
