// Scalar twins of src/bittrue/rules/row_product.py: rows of binary32 numbers quantized to 8 bits when they are multiplied.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace bittrue::rules {

// One row as integers; its elements stand elsewhere.
struct QuantizedRow {
  float scale = 1;
  int32_t zero_point = 0;
};

namespace row_product_detail {

// trunc(v +- 1/2) in vectors of eight, ties away (exactly) behind them. False when v has no defined conversion.
inline bool round(float v, bool in_vector, float* rounded) {
  if (!std::isfinite(v)) return false;
  *rounded = in_vector ? std::trunc(v + (v < 0 ? -0.5f : 0.5f)) : std::round(v);
  return true;
}

inline int8_t limited(float rounded, int32_t zero_point, int32_t low) {
  // Both addends are whole and far inside of binary32's exact range once limited to a few hundred.
  const float near = rounded < -1024.0f ? -1024.0f : (rounded > 1024.0f ? 1024.0f : rounded);
  const int32_t moved = static_cast<int32_t>(near) + zero_point;
  return static_cast<int8_t>(moved < low ? low : (moved > 127 ? 127 : moved));
}

}  // namespace row_product_detail

// False when the conversion of an element is undefined.
inline bool quantize_symmetric(const float* x, int64_t n, int8_t* q, QuantizedRow* row) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return false;
    largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
  }
  row->zero_point = 0;
  row->scale = largest == 0 ? 1.0f : largest / 127.0f;
  const float inverse = largest == 0 ? 0.0f : 127.0f / largest;
  for (int64_t i = 0; i < n; ++i) {
    float rounded;
    if (!row_product_detail::round(x[i] * inverse, i < n / 8 * 8, &rounded)) return false;
    q[i] = row_product_detail::limited(rounded, 0, -127);
  }
  return true;
}

inline bool quantize_asymmetric(const float* x, int64_t n, int8_t* q, QuantizedRow* row) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return false;
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  *row = QuantizedRow();
  if (low == high) {
    for (int64_t i = 0; i < n; ++i) q[i] = 0;
    return true;
  }
  const double exact = static_cast<double>(high - low) / 255.0;
  const double low_steps = static_cast<double>(low) / exact, high_steps = static_cast<double>(high) / exact;
  const bool from_low = 128.0 + std::fabs(low_steps) < 127.0 + std::fabs(high_steps);
  const double chosen = from_low ? -128.0 - low_steps : 127.0 - high_steps;
  if (!std::isfinite(chosen)) return false;
  const double point = std::round(chosen);
  row->zero_point = static_cast<int32_t>(point < -128 ? -128 : (point > 127 ? 127 : point));
  row->scale = static_cast<float>(exact);
  const float inverse = row->scale == 0 ? 0.0f : static_cast<float>(1.0 / static_cast<double>(row->scale));
  for (int64_t i = 0; i < n; ++i) {
    float rounded;
    if (!row_product_detail::round(x[i] * inverse, i < n / 8 * 8, &rounded)) return false;
    q[i] = row_product_detail::limited(rounded, row->zero_point, -128);
  }
  return true;
}

inline bool quantize_row(bool asymmetric, const float* x, int64_t n, int8_t* q, QuantizedRow* row) {
  return asymmetric ? quantize_asymmetric(x, n, q, row) : quantize_symmetric(x, n, q, row);
}

// A [rows, columns] matrix of s8 and its scale.
class RowWeights {
 public:
  RowWeights() = default;
  RowWeights(std::vector<int8_t> weights, int64_t rows, int64_t columns, float scale)
      : weights_(std::move(weights)), columns_(columns), scale_(scale) {
    const int64_t wide = columns / 16 * 16, half = columns - wide >= 8 ? wide + 8 : wide;
    for (int64_t r = 0; r < rows; ++r) {
      const int8_t* row = weights_.data() + r * columns;
      int64_t lanes[8] = {}, sum = 0;
      for (int64_t i = 0; i < wide; ++i) {
        lanes[i % 16 / 2] += row[i];
        lowest_ = lowest_ || row[i] == -128;
      }
      for (int64_t i = wide; i < half; ++i) lanes[i - wide] += row[i];
      for (const int64_t lane : lanes) sum += static_cast<int16_t>(static_cast<uint16_t>(lane));
      for (int64_t i = half; i < columns; ++i) sum += row[i];
      row_sums_.push_back(static_cast<int32_t>(sum));
    }
  }

  // total[r] += binary32(sum - zero point * row sum) * binary32(scale of the row * scale of the weights), every r.
  void add(const int8_t* q, const QuantizedRow& x, float* total) const {
    const float scale = x.scale * scale_;
    for (size_t r = 0; r < row_sums_.size(); ++r) {
      const int8_t* row = weights_.data() + static_cast<int64_t>(r) * columns_;
      int32_t sum = 0;
      for (int64_t i = 0; i < columns_; ++i) sum += static_cast<int32_t>(row[i]) * q[i];
      if (lowest_) {
        // -128 meets negative elements as +128 where a whole vector of 16 is multiplied.
        for (int64_t i = 0; i < columns_ / 16 * 16; ++i) sum += row[i] == -128 && q[i] < 0 ? 256 * q[i] : 0;
      }
      const uint32_t moved = static_cast<uint32_t>(x.zero_point) * static_cast<uint32_t>(row_sums_[r]);
      total[r] += static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(sum) - moved)) * scale;
    }
  }

 private:
  std::vector<int8_t> weights_;
  std::vector<int32_t> row_sums_;
  int64_t columns_ = 0;
  float scale_ = 1;
  bool lowest_ = false;
};

}  // namespace bittrue::rules
