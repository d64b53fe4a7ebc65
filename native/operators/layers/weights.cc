#include "operators/layers/weights.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "isa/portable/turned_weights.h"

namespace bittrue {
namespace {

// One byte per element at run time.
bool is_narrow(Type type) { return is_8bit(type) || type == Type::s4 || type == Type::s2; }

template <class T>
[[gnu::hot]] void move_weights(const T* data, int64_t count, int zero_point, bool as_stored, SignedWeights* result) {
  int low = zero_point, high = zero_point;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, int{data[i]});
    high = std::max(high, int{data[i]});
  }
  // Differences that fit need no zero point at run time.
  const bool fits = !as_stored && low - zero_point >= -128 && high - zero_point <= 127;
  const int by = fits ? zero_point : std::is_unsigned_v<T> ? 128 : 0;
  result->moved.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) result->moved[i] = static_cast<int8_t>(data[i] - by);
  result->data = result->moved.data();
  result->zero_point = zero_point - by;
}

}  // namespace

int64_t sum_of(const int8_t* weights, int64_t count) {
  constexpr int64_t kBlock = 1 << 16;  // sums of 32 bits
  int64_t sum = 0;
  for (int64_t first = 0; first < count; first += kBlock) {
    int32_t part = 0;
    for (int64_t k = first; k < std::min(count, first + kBlock); ++k) part += weights[k];
    sum += part;
  }
  return sum;
}

std::vector<int64_t> sums_of_rows(const int8_t* weights, int64_t rows, int64_t count) {
  std::vector<int64_t> sums;
  for (int64_t n = 0; n < rows; ++n) sums.push_back(sum_of(weights + n * count, count));
  return sums;
}

std::vector<int64_t> sums_of_columns(const int8_t* rows, int64_t depth, int64_t columns) {
  constexpr int64_t kBlock = 1 << 16;  // sums of 32 bits
  std::vector<int64_t> sums(static_cast<size_t>(columns));
  std::vector<int32_t> parts(static_cast<size_t>(columns));
  for (int64_t first = 0; first < depth; first += kBlock) {
    std::fill(parts.begin(), parts.end(), 0);
    for (int64_t k = first; k < std::min(depth, first + kBlock); ++k) {
      for (int64_t n = 0; n < columns; ++n) parts[n] += rows[k * columns + n];
    }
    for (int64_t n = 0; n < columns; ++n) sums[n] += parts[n];
  }
  return sums;
}

SignedWeights signed_weights(const Operand& weights, int64_t zero_point, bool as_stored) {
  require(weights.constant != nullptr, "weights are computed at run time");
  require(is_narrow(weights.type), "weights are not 8-bit");
  require(zero_point >= -255 && zero_point <= 255, "the weights' zero point is out of range");
  SignedWeights result;
  const auto* data = static_cast<const int8_t*>(weights.constant);
  if (weights.type == Type::u8) {
    move_weights(static_cast<const uint8_t*>(weights.constant), weights.elements, static_cast<int>(zero_point),
                 as_stored, &result);
  } else if (zero_point != 0) {
    move_weights(data, weights.elements, static_cast<int>(zero_point), as_stored, &result);
  } else {
    result.data = data;
  }
  return result;
}

SignedWeights column_weights(const Operand& matrix, const std::vector<int64_t>& zero_points, bool turned,
                             bool as_stored) {
  require(matrix.constant != nullptr, "weights are computed at run time");
  require(is_8bit(matrix.type) && matrix.rank() >= 2, "weights are no 8-bit matrix");
  const int64_t last = matrix.shape[matrix.rank() - 1], before = matrix.shape[matrix.rank() - 2];
  const int64_t depth = turned ? last : before, columns = turned ? before : last;
  require(depth * columns == matrix.elements, "there are several matrices");
  require(zero_points.size() == 1 || static_cast<int64_t>(zero_points.size()) == columns,
          "one zero point, or one per column, is needed");
  const bool is_signed = matrix.type == Type::s8;
  const auto* bytes = static_cast<const int8_t*>(matrix.constant);
  std::vector<int8_t> packed;
  if (!turned) {
    packed.resize(static_cast<size_t>(matrix.elements));
    portable::turn(bytes, depth, columns, packed.data());
  }
  for (const int64_t z : zero_points) require(z >= -128 && z <= 255, "the weights' zero point is out of range");
  SignedWeights result;
  if (std::all_of(zero_points.begin(), zero_points.end(), [&](int64_t z) { return z == zero_points[0]; })) {
    Operand whole;
    whole.type = matrix.type;
    whole.elements = matrix.elements;
    whole.constant = turned ? bytes : packed.data();
    result = signed_weights(whole, zero_points[0], as_stored);
    if (result.moved.empty() && !turned) {
      result.moved = std::move(packed);
      result.data = result.moved.data();
    }
    return result;
  }
  require(!as_stored, "pairs of products with zero points per column");
  if (turned) packed.assign(bytes, bytes + matrix.elements);
  for (int64_t n = 0; n < columns; ++n) {
    for (int64_t k = 0; k < depth; ++k) {
      int8_t& weight = packed[n * depth + k];
      const int64_t difference = (is_signed ? int64_t{weight} : int64_t{static_cast<uint8_t>(weight)}) - zero_points[n];
      require(difference >= -128 && difference <= 127, "zero points per column leave more than 8 bits");
      weight = static_cast<int8_t>(difference);
    }
  }
  result.moved = std::move(packed);
  result.data = result.moved.data();
  return result;
}

std::vector<int64_t> weight_zero_points(const Step& step, size_t operand) {
  if (step.integers.count("weight_zero_point")) return {step.integer("weight_zero_point")};
  if (step.has_array("weight_zero_points")) {
    const Array& array = step.array("weight_zero_points");
    require(array.count > 0 && (array.shape.empty() || array.shape.back() == array.count),
            "zero points differ by matrix");
    std::vector<int64_t> values;
    for (int64_t i = 0; i < array.count; ++i) values.push_back(array.integer(i));
    return values;
  }
  if (!step.has_input(operand)) return {0};
  const Operand& given = step.input(operand);
  require(given.constant != nullptr && given.elements > 0, "the weights' zero point is known while running only");
  require(given.rank() < 2 || given.shape.back() == given.elements, "zero points differ by matrix");
  return given.integers();
}

std::vector<int64_t> biases(const Step& step, size_t input, int64_t columns) {
  if (!step.has_input(input)) return std::vector<int64_t>(static_cast<size_t>(columns), 0);
  std::vector<int64_t> values = step.input(input).integers();
  require(static_cast<int64_t>(values.size()) == columns, "one bias per column is needed");
  return values;
}

const uint8_t* packed_rows(const uint8_t* data, int64_t rows, int64_t depth, int64_t packed_depth, uint8_t* copy) {
  if (depth == packed_depth) return data;
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(copy + r * packed_depth, data + r * depth, static_cast<size_t>(depth));
    std::memset(copy + r * packed_depth + depth, 0, static_cast<size_t>(packed_depth - depth));
  }
  return copy;
}

bool adds_in_pairs(const Step& step) {
  if (step.rule("accumulate") != "s16_pairs_s32_wrap") return false;
  const Type x = step.input(0).type, w = step.input(1).type;
  require(is_8bit(x) && is_8bit(w) && !(x == Type::s8 && w == Type::u8), "pairs of products of other types");
  return true;
}

bool suits_matmul(const Step& step, size_t source, size_t bias_input, bool pairs) {
  const Operand& weights = step.input(1);
  const bool narrow = is_narrow(weights.type);
  const bool bias = !step.has_input(bias_input) || step.input(bias_input).constant != nullptr;
  const Type type = step.input(source).type;
  const int flip = flip_of(type);
  const int64_t zero_point = step.integer("input_zero_point");
  const std::string& width = step.rule("accumulate");
  const bool proven = width == "s64" && step.bounded && step.magnitude < (int64_t{1} << 31);
  // The cores rescale all columns by one rule.
  const bool alike = step.rules.count("rescale_tail") == 0;
  return alike && is_8bit(type) && is_8bit(step.output().type) && narrow && weights.constant != nullptr && bias &&
         zero_point >= -flip && zero_point <= 255 - flip &&
         (proven || width == "s32_wrap" || (pairs && adds_in_pairs(step)));
}

uint8_t stored_zero_point(const Step& step, size_t source) {
  const int flip = flip_of(step.input(source).type);
  return static_cast<uint8_t>(step.integer("input_zero_point", -flip, 255 - flip) + flip);
}

int64_t joined_groups(int64_t groups, int64_t filters) {
  constexpr int64_t kLinesTogether = 16;  // filters that a matrix product does at once in any case
  for (int64_t count = std::min(groups, kLinesTogether / filters); count > 1; --count) {
    if (groups % count == 0) return count;
  }
  return 1;
}

SignedWeights join_groups(const SignedWeights& weights, int64_t out_c, int64_t filters, int64_t taps, int64_t depth,
                          int64_t joined) {
  SignedWeights wide;
  wide.zero_point = weights.zero_point;
  wide.moved.assign(static_cast<size_t>(out_c * taps * depth * joined), static_cast<int8_t>(weights.zero_point));
  for (int64_t n = 0; n < out_c; ++n) {
    const int64_t place = n / filters % joined;
    for (int64_t t = 0; t < taps; ++t) {
      std::copy_n(weights.data + (n * taps + t) * depth, depth,
                  wide.moved.data() + ((n * taps + t) * joined + place) * depth);
    }
  }
  wide.data = wide.moved.data();
  return wide;
}

}  // namespace bittrue
