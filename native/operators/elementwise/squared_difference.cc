// squared_difference: (first - second)^2.
#include <algorithm>

#include "operators/core/registry.h"
#include "operators/core/zip.h"
#include "operators/elementwise/add.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

// The aligned inputs by tables; the square wraps to 32 bits.
class SquaredDifferenceBytes final : public BlockKernel {
 public:
  SquaredDifferenceBytes(const Step& step, const CoreSet& cores)
      : BlockKernel(step, 2), requantize_rows_(cores.requantize_rows()) {
    const std::array<int64_t, 256> first = aligned(step, "first_").table(step.input(0).type);
    const std::array<int64_t, 256> second = aligned(step, "second_").table(step.input(1).type);
    const int64_t largest = std::min<int64_t>(magnitude(first) + magnitude(second), int64_t{1} << 31);
    requantize_ = requantization(step, rescaling(step), largest * largest);
    // Modulo 2^32, where the square lives.
    for (int i = 0; i < 256; ++i) {
      first_[i] = static_cast<uint32_t>(first[i]);
      second_[i] = static_cast<uint32_t>(second[i]);
    }
  }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    constexpr int64_t kPiece = 512;
    int32_t squares[kPiece];
    for (int64_t begin = 0; begin < count; begin += kPiece) {
      const int64_t size = std::min(kPiece, count - begin);
      for (int64_t i = 0; i < size; ++i) {
        const uint32_t difference = first_[in[0][begin + i]] - second_[in[1][begin + i]];
        squares[i] = static_cast<int32_t>(difference * difference);
      }
      requantize_rows_(requantize_, squares, 1, out + begin, size);
    }
  }

  RequantizeRows requantize_rows_;
  rules::Requantize requantize_;
  uint32_t first_[256], second_[256];
};

std::unique_ptr<Kernel> make_squared_difference(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (step.input(1).type != type || step.output().type != type) return nullptr;
  if (step.text("form") == "rescaled") {
    return is_8bit(type) ? std::make_unique<SquaredDifferenceBytes>(step, cores) : nullptr;
  }
  require(step.text("form") == "plain", "an unknown form");
  if (type == Type::s32) {
    return make_zip<uint32_t, uint32_t>(step, [](uint32_t a, uint32_t b) { return (a - b) * (a - b); });
  }
  if (type != Type::f32) return nullptr;
  return make_zip<float, float>(step, [](float a, float b) {
    const float difference = a - b;
    return rules::with_first_nan(difference * difference, a, b);
  });
}

BITTRUE_OPERATOR(squared_difference, make_squared_difference)

}  // namespace
}  // namespace bittrue
