#include "operators/quantization/level_kernel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace bittrue {
namespace {

// Scales and zero points as binary32 numbers, whatever they are.
float number(const Step& step, const std::string& key) { return static_cast<float>(step.real(key.c_str())); }

Blocks blocks_of(const Step& step, size_t operands, bool aligned) {
  std::vector<Operand> copies;
  for (size_t i = 0; i < operands; ++i) {
    copies.push_back(step.input(i));
    if (!aligned || i == 0) continue;
    const Operand& out = step.output();
    require(copies[i].dense() && copies[i].elements == out.elements, "operands have other shapes");
    copies[i].shape = out.shape;
    copies[i].row_stride = copies[i].row_bytes();
  }
  std::vector<const Operand*> inputs;
  for (const Operand& copy : copies) inputs.push_back(&copy);
  return Blocks(inputs, step.output());
}

}  // namespace

rules::Levels levels_of(const Step& step) {
  using Rule = rules::Levels::Rule;
  constexpr struct {
    const char* name;
    Rule rule;
    bool even;
  } kRules[] = {{"binary32_divide_away", Rule::divide, false},
                {"binary32_divide_even", Rule::divide, true},
                {"binary32_multiply_away", Rule::multiply, false},
                {"binary32_multiply_even", Rule::multiply, true},
                {"whole_away", Rule::whole, false}};
  const std::string& name = step.rule("levels");
  for (const auto& row : kRules) {
    if (name == row.name) {
      return rules::Levels(row.rule, row.even, step.real("output_scale"), step.real("output_zero_point"));
    }
  }
  no_kernel("no native rule for this slot");
}

rules::RealLevels real_levels_of(const Step& step, const std::string& name) {
  return {number(step, name + "_zero_point"), number(step, name + "_scale")};
}

LevelStore::LevelStore(const Step& step)
    : low_(number(step, "low")), high_(number(step, "high")), eight_bits_(is_8bit(step.output().type)) {
  flip_ = flip_of(step.output().type);
  require(eight_bits_ || step.output().type == Type::f32, "no native kernel for these types");
}

bool LevelStore::store(const float* levels, uint8_t* out, int64_t count) const {
  // Ends are taken where both are equal, and NaN stays.
  const auto limited = [this](float y) {
    const float raised = y > low_ || y != y ? y : low_;
    return raised < high_ || raised != raised ? raised : high_;
  };
  if (!eight_bits_) {
    auto* target = reinterpret_cast<float*>(out);
    for (int64_t i = 0; i < count; ++i) target[i] = limited(levels[i]);
    return true;
  }
  const auto least = static_cast<float>(-flip_), most = static_cast<float>(255 - flip_);
  int32_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float y = limited(levels[i]);
    const bool inside = y >= least && y <= most;
    const auto whole = static_cast<int32_t>(inside ? y : least);
    wrong |= static_cast<int32_t>(!inside) | static_cast<int32_t>(static_cast<float>(whole) != y);
    out[i] = static_cast<uint8_t>(whole + flip_);
  }
  return wrong == 0;
}

LevelLoad::LevelLoad(const Operand& operand) : flip_(flip_of(operand.type)), eight_bits_(is_8bit(operand.type)) {
  require(eight_bits_ || operand.type == Type::f32, "no native kernel for these types");
}

const float* LevelLoad::load(const uint8_t* source, float* buffer, int64_t count) const {
  if (!eight_bits_) return reinterpret_cast<const float*>(source);
  for (int64_t i = 0; i < count; ++i) buffer[i] = static_cast<float>(int32_t{source[i]} - flip_);
  return buffer;
}

LevelKernel::LevelKernel(const Step& step, size_t operands, bool aligned)
    : store_(step), blocks_(blocks_of(step, operands, aligned)) {
  for (size_t i = 0; i < operands; ++i) {
    loads_.emplace_back(step.input(i));
    item_.push_back(type_bytes(step.input(i).type));
  }
}

bool LevelKernel::chunk(const uint8_t* const* in, uint8_t* out, int64_t count) const {
  float buffers[2][kChunk], results[kChunk];
  const float* values[2] = {};
  for (size_t i = 0; i < loads_.size(); ++i) values[i] = loads_[i].load(in[i], buffers[i], count);
  const bool defined = levels(values, results, count);
  return store_.store(results, out, count) && defined;
}

void LevelKernel::run(const Run& run) const {
  std::atomic<bool> all{true};
  const int64_t item = store_.eight_bits() ? 1 : 4;
  blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
    for (int64_t i = 0; i < count; i += kChunk) {
      const uint8_t* places[2] = {};
      for (size_t k = 0; k < loads_.size(); ++k) places[k] = in[k] + i * item_[k];
      if (!chunk(places, out + i * item, std::min(kChunk, count - i))) all.store(false, std::memory_order_relaxed);
    }
  });
  if (!all.load(std::memory_order_relaxed)) throw Undefined();
}

}  // namespace bittrue
