// add and sub: first + second, first - second.
#include "operators/elementwise/add.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "operators/core/lanes.h"
#include "operators/core/registry.h"
#include "operators/core/zip.h"
#include "operators/elementwise/operand_pairs.h"

namespace bittrue {
namespace {

constexpr int64_t kLeastTotal = std::numeric_limits<int32_t>::min(), kMostTotal = std::numeric_limits<int32_t>::max();

// (first weight * (a - first zero point) + second weight * (b - second zero point)) / 2^right, stored.
struct Weighted {
  int32_t first, second, right;
  int32_t first_zero_point, second_zero_point;  // of stored bytes
  int32_t least, most, offset;

  // The second weight is subtracted where `sign` is -1.
  Weighted(const Step& step, int64_t sign, int64_t most_weight, int64_t most_right)
      : first(static_cast<int32_t>(step.integer("first_weight", 0, most_weight))),
        second(static_cast<int32_t>(sign * step.integer("second_weight", 0, most_weight))),
        right(static_cast<int32_t>(step.integer("right_shift", 1, most_right))) {
    const Type type = step.input(0).type;
    require(is_8bit(type), "no native kernel for these types");
    const int flip = flip_of(type);
    first_zero_point = static_cast<int32_t>(step.integer("first_zero_point", -flip, 255 - flip) + flip);
    second_zero_point = static_cast<int32_t>(step.integer("second_zero_point", -flip, 255 - flip) + flip);
    const Storing store = storing(step);
    require(store.rule == rules::StoreRule::clamp_then_zero_point && std::abs(store.zero_point) <= 1 << 16,
            "no native rule for this slot");
    constexpr int64_t kLeast = std::numeric_limits<int16_t>::min(), kMost = std::numeric_limits<int16_t>::max();
    least = static_cast<int32_t>(std::min(std::max<int64_t>(store.low, kLeast), kMost) - store.zero_point);
    most = static_cast<int32_t>(std::min(std::max<int64_t>(store.high, kLeast), kMost) - store.zero_point);
    offset = static_cast<int32_t>(store.zero_point + flip);
  }
};

// Ties up, and weights within 21 bits: every sum fits 32 bits.
std::unique_ptr<Kernel> make_weighted(const Step& step, int64_t sign) {
  const Weighted w(step, sign, 1 << 21, 30);
  const int32_t bias = (1 << (w.right - 1)) - w.first * w.first_zero_point - w.second * w.second_zero_point;
  return make_zip<uint8_t, uint8_t>(step, [=](uint8_t a, uint8_t b) {
    const int32_t sum = (w.first * a + w.second * b + bias) >> w.right;
    return static_cast<uint8_t>(std::min(std::max(sum, w.least), w.most) + w.offset);
  });
}

// Ties away from zero, and weights within 22 bits: every sum of products fits 32 bits, but not always with one half added
// to it.
std::unique_ptr<Kernel> make_weighted_away(const Step& step, int64_t sign) {
  const Weighted w(step, sign, 1 << 22, 62);
  if (w.right <= 23) {
    // The sum is 2^23 or more away from the ends of 32 bits: more than one half.
    const int32_t half = 1 << (w.right - 1);
    return make_zip<uint8_t, uint8_t>(step, [=](uint8_t a, uint8_t b) {
      const int32_t sum = w.first * (a - w.first_zero_point) + w.second * (b - w.second_zero_point);
      const int32_t divided = (sum + half - (sum < 0)) >> w.right;
      return static_cast<uint8_t>(std::min(std::max(divided, w.least), w.most) + w.offset);
    });
  }
  const int64_t half = int64_t{1} << (w.right - 1);
  return make_zip<uint8_t, uint8_t>(step, [=](uint8_t a, uint8_t b) {
    const int64_t sum = int64_t{w.first} * (a - w.first_zero_point) + int64_t{w.second} * (b - w.second_zero_point);
    const int64_t divided = (sum + half - (sum < 0)) >> w.right;
    return static_cast<uint8_t>(std::min<int64_t>(std::max<int64_t>(divided, w.least), w.most) + w.offset);
  });
}

using Aligns = std::array<int32_t, 256>;

// One input's aligned values by stored byte, under the rule of `slot`.
Aligns lane_table(const Step& step, const char* slot, const std::string& prefix) {
  const Type type = step.input(0).type;
  const int64_t zero_point = step.integer((prefix + "zero_point").c_str(), -512, 512);
  const Rescaling rescale = rescaling(step, prefix);
  const rules::Multiplier& m = rescale.multiplier;
  require(m.exponent <= 0 && m.exponent > -60, "inputs must be scaled down");
  constexpr int kLeft = 20;
  const std::string& rule = step.rule(slot);
  Aligns result;
  for (int byte = 0; byte < 256; ++byte) {
    const int64_t q = byte - flip_of(type) - zero_point;
    int64_t value;
    if (rule == "left_20_exponent_first") {
      value = rules::align_exponent_first(q, kLeft, m);
    } else if (rule == "left_20_exponent_down") {
      value = rules::align_exponent_down(q, kLeft, m);
    } else {
      require(rule == "left_20", "no native rule for this slot");
      value = rules::align(q, kLeft, rescale.rule, m);
    }
    result[byte] = static_cast<int32_t>(value);
  }
  return result;
}

// Additions whose vector and scalar loops align and store differently.
std::unique_ptr<Kernel> make_lane_add(const Step& step) {
  const Type type = step.input(0).type;
  require(is_8bit(type) && step.text("form") == "rescaled" && step.rule("store") == "wrap_s16_then_clamp" &&
              step.rule("store_tail") == "zero_point_then_clamp",
          "no native kernel for these rules");
  const Aligns first = lane_table(step, "align", "first_"), second = lane_table(step, "align", "second_");
  const Aligns first_tail = lane_table(step, "align_tail", "first_");
  const Aligns second_tail = lane_table(step, "align_tail", "second_");
  const Rescaling rescale = rescaling(step);
  const int64_t zero_point = step.integer("output_zero_point", kLeastTotal, kMostTotal);
  const int64_t low = step.integer("low", kLeastTotal, kMostTotal),
                high = step.integer("high", kLeastTotal, kMostTotal);
  const int flip = flip_of(type);
  // |q - zero point| < 2^10, so that aligned values stay below 2^30 and sums below 2^31.
  const auto body = [=](const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t rescaled = rescale(first[a[i]] + int64_t{second[b[i]]});
      out[i] = static_cast<uint8_t>(rules::wrap_s16_then_clamp(rescaled, zero_point, low, high) + flip);
    }
  };
  const auto tail = [=](uint8_t a, uint8_t b) {
    const int64_t rescaled = rescale(first_tail[a] + int64_t{second_tail[b]});
    return static_cast<uint8_t>(rules::zero_point_then_clamp(rescaled, zero_point, low, high) + flip);
  };
  return make_lane_zip(step, body, tail);
}

// What each stored byte, or integer of 16 bits, is worth in the output's scale, without zero point; sums are modulo 2^32.
template <class T, size_t kEntries>
std::unique_ptr<Kernel> make_tabled(const Step& step, bool subtract) {
  const Type type = step.input(0).type;
  if (step.input(1).type != type || step.output().type != type) return nullptr;
  const int flip = flip_of(type);
  // Small ones are copied into loops.
  using Table = std::conditional_t<kEntries == 256, std::array<uint32_t, 256>, std::vector<uint32_t>>;
  Table first{}, second{};
  // Tables begin with the smallest integer, which the place of 16 bits without a sign does not.
  const bool turned = type == Type::s16;
  const auto read = [&](const char* key, Table& table, uint32_t sign) {
    const Array& array = step.array(key);
    require(array.count == static_cast<int64_t>(kEntries), "there must be one entry per integer");
    if constexpr (kEntries != 256) table.resize(kEntries);
    for (size_t i = 0; i < kEntries; ++i) {
      table[turned ? i ^ kEntries / 2 : i] = sign * static_cast<uint32_t>(array.integer(static_cast<int64_t>(i)));
    }
  };
  read("first_table", first, 1u);
  read("second_table", second, subtract ? ~0u : 1u);
  const auto zero_point = static_cast<uint32_t>(step.integer("output_zero_point", kLeastTotal, kMostTotal));
  const auto low = static_cast<int32_t>(step.integer("low", kLeastTotal, kMostTotal));
  const auto high = static_cast<int32_t>(step.integer("high", kLeastTotal, kMostTotal));
  return make_zip<T, T>(step, [=](T a, T b) {
    const auto sum = static_cast<int32_t>(first[a] + second[b] + zero_point);
    return static_cast<T>(std::min(std::max(sum, low), high) + flip);
  });
}

std::unique_ptr<Kernel> make_quantized(const Step& step, const CoreSet& cores, bool subtract) {
  if (step.text("form") == "operands" && !subtract) return make_operand_add(step, cores);
  if (step.text("form") == "ranges" && !subtract) return make_ranged_add(step);
  if (step.text("form") == "affine") return make_affine_add(step, cores);
  if (step.text("form") == "of_many") return nullptr;
  if (step.text("form") == "tables") {
    if (is_8bit(step.input(0).type)) return make_tabled<uint8_t, 256>(step, subtract);
    return type_bytes(step.input(0).type) == 2 ? make_tabled<uint16_t, 65536>(step, subtract) : nullptr;
  }
  if (step.rules.count("lanes") && step.text("form") == "rescaled") return subtract ? nullptr : make_lane_add(step);
  const Type type = step.input(0).type;
  if (step.input(1).type != type || step.output().type != type) return nullptr;
  const int64_t sign = subtract ? -1 : 1;
  const Storing store = storing(step);
  if (step.text("form") == "power_of_two") {
    if (type != Type::s16) return nullptr;
    const auto first = static_cast<int>(step.integer("first_right_shift", 0, 15));
    const auto second = static_cast<int>(step.integer("second_right_shift", 0, 15));
    return make_zip<int16_t, int16_t>(step, [=](int16_t a, int16_t b) {
      const int64_t sum = rules::align_power_of_two(a, first) + sign * rules::align_power_of_two(b, second);
      return static_cast<int16_t>(std::min(std::max(sum, store.low), store.high));
    });
  }
  if (step.text("form") == "weighted") return make_weighted(step, sign);
  if (step.text("form") == "weighted_away") return make_weighted_away(step, sign);
  if (is_8bit(type)) return std::make_unique<ElementwiseBytes>(step, cores.add(add_spec(step, subtract)));
  require(step.text("form") == "rescaled", "an unknown form");
  const Aligned first = aligned(step, "first_"), second = aligned(step, "second_");
  if (type != Type::s16) return nullptr;
  // Then the aligned sum fits 32 bits.
  require(first.zero_point == 0 && second.zero_point == 0 && first.rescale.multiplier.exponent <= 0 &&
              second.rescale.multiplier.exponent <= 0,
          "16-bit inputs must have zero point 0 and be scaled down");
  const Rescaling rescale = rescaling(step);
  return make_zip<int16_t, int16_t>(
      step, [=](int16_t a, int16_t b) { return static_cast<int16_t>(store(rescale(first(a) + sign * second(b)))); });
}

}  // namespace

std::array<int64_t, 256> Aligned::table(Type type) const {
  std::array<int64_t, 256> values;
  for (int byte = 0; byte < 256; ++byte) values[byte] = (*this)(byte - flip_of(type));
  return values;
}

AddSpec add_spec(const Step& step, bool subtract) {
  const Type type = step.input(0).type;
  require(is_8bit(type) && step.input(1).type == type && step.output().type == type, "operands are not 8-bit");
  require(step.text("form") == "rescaled", "an unknown form");
  const Aligned first = aligned(step, "first_"), second = aligned(step, "second_");
  const int64_t bound = magnitude(first.table(type)) + magnitude(second.table(type));
  require(bound <= kMostTotal, "the aligned sum leaves 32 bits");
  AddSpec spec;
  const int flip = flip_of(type);
  spec.first_zero_point = static_cast<int32_t>(first.zero_point + flip);
  spec.second_zero_point = static_cast<int32_t>(second.zero_point + flip);
  spec.left = first.left;
  spec.align = first.rescale.rule;
  spec.first = first.rescale.multiplier;
  spec.second = second.rescale.multiplier;
  spec.subtract = subtract;
  spec.requantize = requantization(step, rescaling(step), bound);
  return spec;
}

Aligned aligned(const Step& step, const std::string& prefix) {
  Aligned result;
  result.zero_point = step.integer((prefix + "zero_point").c_str(), -kLargestZeroPoint, kLargestZeroPoint);
  result.rescale = rescaling(step, prefix);
  const std::string& name = step.rule("align");
  for (const rules::AlignRow& row : rules::kAlign) {
    if (name == row.name) result.left = row.left;
  }
  require(result.left > 0, "no native rule for this slot");
  return result;
}

int64_t magnitude(const std::array<int64_t, 256>& values) {
  int64_t largest = 0;
  for (const int64_t value : values) largest = std::max(largest, value < 0 ? -value : value);
  return largest;
}

static std::unique_ptr<Kernel> make_add(const Step& step, const CoreSet& cores) {
  if (step.rules.count("level_sum") || step.rules.count("levels")) return make_add_levels(step);
  return step.text("form") == "plain" ? make_pair_loop(step, cores, PairLoop::sum) : make_quantized(step, cores, false);
}

static std::unique_ptr<Kernel> make_sub(const Step& step, const CoreSet& cores) {
  return step.text("form") == "plain" ? make_pair_loop(step, cores, PairLoop::difference)
                                      : make_quantized(step, cores, true);
}

BITTRUE_OPERATOR(add, make_add)
BITTRUE_OPERATOR(sub, make_sub)

}  // namespace bittrue
