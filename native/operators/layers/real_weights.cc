#include "operators/layers/real_weights.h"

#include <cmath>
#include <cstring>

namespace bittrue {

std::vector<float> real_constant(const Operand& operand, int64_t count) {
  require(operand.type == Type::f32 && operand.constant != nullptr && operand.elements == count,
          "real constants do not fit");
  std::vector<float> values(static_cast<size_t>(count));
  if (count > 0) std::memcpy(values.data(), operand.constant, static_cast<size_t>(count) * sizeof(float));
  return values;
}

std::vector<float> real_array(const Step& step, const std::string& key, int64_t count) {
  const Array& array = step.array(key);
  require(array.type == Type::f32 && array.count == count, "a prepared array does not fit");
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(array.real(i)));
  return values;
}

std::vector<int8_t> byte_constant(const Operand& operand, int64_t count) {
  require(is_8bit(operand.type) && operand.constant != nullptr && operand.elements == count,
          "8-bit constants do not fit");
  std::vector<int8_t> values(static_cast<size_t>(count));
  if (count > 0) std::memcpy(values.data(), operand.constant, static_cast<size_t>(count));
  return values;
}

rules::Activation activation_of(const Step& step, bool none) {
  const bool fused = step.rule("activation") == "binary32_fused_rational_lanes_4";
  require(fused || step.rule("activation") == "binary32_rational_lanes_4", "no native activation rule");
  rules::Activation found = rules::find_activation(step.text("activation"));
  require(found != rules::Activation::fused_tanh, "no native activation");
  if (fused && found == rules::Activation::tanh) found = rules::Activation::fused_tanh;
  require(found != rules::Activation::unknown && (none || found != rules::Activation::none), "no native activation");
  return found;
}

bool all_zero(const float* x, int64_t count) {
  int64_t i = 0;
  for (; i < count / 4 * 4; ++i) {
    if (std::fabs(x[i]) > 0.0f) return false;
  }
  for (; i < count; ++i) {
    if (x[i] != 0.0f) return false;
  }
  return true;
}

bool Rows::quantize(bool asymmetric) const {
  for (int64_t b = 0; b < count; ++b) {
    if (!rules::quantize_row(asymmetric, x + b * n, n, q + b * n, row + b)) return false;
  }
  return true;
}

RealMatrix::RealMatrix(const Step& step, const Operand& operand, const std::string& scale, int64_t rows,
                       int64_t columns)
    : quantized_(operand.type != Type::f32), rows_(rows), columns_(columns) {
  require(operand.rank() == 2 && operand.shape[0] == rows && operand.shape[1] == columns, "a matrix has another shape");
  if (!quantized_) {
    dot_ = rules::find_dot(step.rule("dot"));
    require(dot_ != rules::DotRule::unknown, "no native dot rule");
    real_ = real_constant(operand, rows * columns);
    return;
  }
  require(step.rule("row_product") == "s8_vectors_binary32_scale" && columns <= kLongestRow, "no native row product");
  bytes_ = rules::RowWeights(byte_constant(operand, rows * columns), rows, columns, real_array(step, scale, 1)[0]);
}

void RealMatrix::add(const Rows& x, float* total) const {
  for (int64_t b = 0; b < x.count; ++b) {
    float* out = total + b * rows_;
    if (quantized_) {
      bytes_.add(x.q + b * columns_, x.row[b], out);
      continue;
    }
    const float* source = x.x + b * columns_;
    for (int64_t r = 0; r < rows_; ++r) {
      out[r] = rules::dot(dot_, real_.data() + r * columns_, source, columns_, out[r], rows_);
    }
  }
}

}  // namespace bittrue
