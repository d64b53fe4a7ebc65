// Kernels of quantized values that real numbers or 8 bits hold (src/bittrue/operators/quantization/level_storage.py).
#pragma once

#include <string>
#include <vector>

#include "core/kernel.h"
#include "operators/core/blocks.h"
#include "rules/levels.h"

namespace bittrue {

// The rule of the slot `levels` with the scale and zero point of the output.
rules::Levels levels_of(const Step& step);
// `<name>_scale` and `<name>_zero_point`.
rules::RealLevels real_levels_of(const Step& step, const std::string& name);

// Limits, and how results between them are stored.
class LevelStore {
 public:
  explicit LevelStore(const Step& step);

  bool eight_bits() const { return eight_bits_; }
  // Elements of the result from binary32 numbers; false where the type does not hold one of them.
  bool store(const float* levels, uint8_t* out, int64_t count) const;

 private:
  float low_, high_;
  int32_t flip_ = 0;
  bool eight_bits_;
};

// Where the elements of an operand begin as binary32 numbers: the operand itself, or `buffer`, which they are copied to.
class LevelLoad {
 public:
  explicit LevelLoad(const Operand& operand);
  const float* load(const uint8_t* source, float* buffer, int64_t count) const;

 private:
  int32_t flip_;
  bool eight_bits_;
};

// Element by element, one or two operands; results without a definition leave the step to the reference.
class LevelKernel : public Kernel {
 public:
  static constexpr int64_t kChunk = 512;

  void run(const Run& run) const final;
  int64_t scratch_bytes(int threads) const final { return blocks_.scratch_bytes(threads); }

 protected:
  // `aligned`: the second operand has as many elements as the result, whatever its shape.
  LevelKernel(const Step& step, size_t operands, bool aligned = false);
  // The results before limits, of at most kChunk elements; false where one is not defined.
  virtual bool levels(const float* const* in, float* out, int64_t count) const = 0;

 private:
  bool chunk(const uint8_t* const* in, uint8_t* out, int64_t count) const;

  std::vector<LevelLoad> loads_;
  std::vector<int64_t> item_;
  LevelStore store_;
  Blocks blocks_;
};

}  // namespace bittrue
