// power: first ^ second. Negative exponents of integers are the reference's to report.
#include <cmath>

#include "arithmetic/elementary.h"
#include "arithmetic/floats.h"
#include "operators/core/registry.h"
#include "operators/core/zip.h"

namespace bittrue {
namespace {

// In binary64 every power below 2^53 is exact, and no larger one comes back below it.
template <class T>
T by_squaring(T base, int32_t exponent) {
  T result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

// One exponent that is nearly a whole number of 1 or more: products from the highest bit, each kept finite.
float multiplied(float x, int32_t exponent) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const auto product = [](float a, float b) {
    return rules::clamp(rules::with_first_nan(a * b, a, b), -kLargest, kLargest);
  };
  int bit = 30;
  while (!(exponent >> bit & 1)) --bit;
  float result = x;
  while (bit-- > 0) {
    result = product(result, result);
    if (exponent >> bit & 1) result = product(x, result);
  }
  return result;
}

// The whole number that an exponent is within 1e-5 of, 0 when there is none of 1 or more.
int32_t near_whole(float exponent) {
  const int32_t whole = arithmetic::round_away_to_s32(exponent);
  return std::fabs(exponent - static_cast<float>(whole)) < 1e-5f && whole >= 1 ? whole : 0;
}

void require_one(const Step& step, bool one_exponent) {
  require(!one_exponent || step.input(1).elements == 1, "there must be one exponent");
}

std::unique_ptr<Kernel> make_real_power(const Step& step, bool one_exponent) {
  const std::string& rule = step.rule("power");
  if (rule == "binary32_products_or_library") {
    // One for every row.
    return make_zip<float, float>(step, [one_exponent](float x, float y) {
      return one_exponent && (y == 2 || y == 3) ? (y == 2 ? x * x : x * x * x) : arithmetic::power(x, y);
    });
  }
  require_one(step, one_exponent);
  if (rule == "library") return make_zip<float, float>(step, arithmetic::power);
  require(rule == "finite_products_or_library", "no native rule for this slot");
  return make_zip<float, float>(step, [one_exponent](float x, float y) {
    const int32_t whole = one_exponent ? near_whole(y) : 0;
    return whole ? multiplied(x, whole) : arithmetic::power(x, y);
  });
}

std::unique_ptr<Kernel> make_power(const Step& step, const CoreSet&) {
  // One exponent of 1 or more for all elements: powers wrap. Otherwise what leaves 32 bits becomes -2^31.
  const bool one_exponent = step.integer("one_exponent", 0, 1) != 0;
  const Type type = step.input(0).type;
  if (type == Type::f32 && step.output().type == type) return make_real_power(step, one_exponent);
  require_one(step, one_exponent);
  if (type != Type::s32 || step.output().type != type) return nullptr;
  return make_checked_zip<int32_t, int32_t>(step, [one_exponent](int32_t base, int32_t exponent, bool* defined) {
    if (exponent < 0) *defined = false;
    if (one_exponent && exponent > 0) return static_cast<int32_t>(by_squaring(static_cast<uint32_t>(base), exponent));
    return arithmetic::truncate_to_s32(by_squaring(static_cast<double>(base), exponent));
  });
}

BITTRUE_OPERATOR(power, make_power)

}  // namespace
}  // namespace bittrue
