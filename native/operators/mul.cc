// mul: first * second.
#include <algorithm>
#include <limits>

#include "operators/rescaling.h"
#include "operators/zip.h"
#include "rules/product.h"

namespace bittrue {
namespace {

// Bytes minus their zero points are 16-bit numbers, so that products are exact in 32 bits.
class MulBytes final : public Kernel {
 public:
  static constexpr int64_t kLargest = 32000;

  MulBytes(const Step& step, const CoreSet& cores)
      : blocks_({&step.input(0), &step.input(1)}, step.output()), requantize_row_(cores.requantize_row()) {
    const int flip = flip_of(step.input(0).type);
    const int64_t first = step.integer("first_zero_point", -kLargest, kLargest) + flip;
    const int64_t second = step.integer("second_zero_point", -kLargest, kLargest) + flip;
    const auto span = [](int64_t zero_point) { return std::max(std::abs(zero_point), std::abs(255 - zero_point)); };
    requantize_ = requantization(step, rescaling(step), span(first) * span(second));
    first_ = static_cast<int16_t>(first);
    second_ = static_cast<int16_t>(second);
  }

  void run(const Run& run) const override {
    blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
      constexpr int64_t kPiece = 512;
      int32_t products[kPiece];
      for (int64_t begin = 0; begin < count; begin += kPiece) {
        const int64_t size = std::min(kPiece, count - begin);
        const uint8_t *first = in[0] + begin, *second = in[1] + begin;
        for (int64_t i = 0; i < size; ++i) {
          const auto a = static_cast<int16_t>(first[i] - first_), b = static_cast<int16_t>(second[i] - second_);
          products[i] = static_cast<int32_t>(a) * static_cast<int32_t>(b);
        }
        requantize_row_(requantize_, products, out + begin, size);
      }
    });
  }
  int64_t scratch_bytes(int threads) const override { return blocks_.scratch_bytes(threads); }

 private:
  Blocks blocks_;
  RequantizeRow requantize_row_;
  rules::Requantize requantize_;
  int16_t first_ = 0, second_ = 0;
};

struct Times {
  template <class T>
  T operator()(T a, T b) const { return a * b; }
};

}  // namespace

std::unique_ptr<Kernel> make_mul(const Step& step, const CoreSet& cores) {
  if (step.text("form") == "plain") return make_plain_zip<Times>(step);
  const Type from = step.input(0).type, to = step.output().type;
  if (step.input(1).type != from) return nullptr;
  const std::string& rule = step.rule("product");
  if (rule == "q15_up_then_256_away") {
    if (from != Type::s16 || !is_8bit(to)) return nullptr;
    step.integer("first_zero_point", 0, 0);
    step.integer("second_zero_point", 0, 0);
    const Storing store = storing(step);
    const int flip = flip_of(to);
    return make_zip<int16_t, uint8_t>(step, [=](int16_t a, int16_t b) {
      return static_cast<uint8_t>(store(rules::q15_up_then_256_away(a, b)) + flip);
    });
  }
  require(rule == "exact_s32", "no native rule for this slot");
  if (is_8bit(from) && is_8bit(to)) return std::make_unique<MulBytes>(step, cores);
  if (from != Type::s16 || to != Type::s16) return nullptr;
  const Rescaling rescale = rescaling(step);
  const Storing store = storing(step);
  const int64_t first = step.integer("first_zero_point", -32768, 32767);
  const int64_t second = step.integer("second_zero_point", -32768, 32767);
  return make_zip<int16_t, int16_t>(step, [=](int16_t a, int16_t b) {
    return static_cast<int16_t>(store(rescale(arithmetic::wrap_s32((a - first) * (b - second)))));
  });
}

}  // namespace bittrue
