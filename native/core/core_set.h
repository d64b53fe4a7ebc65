// The cores of one instruction set, completed by the simpler ones below it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "isa/cores.h"

namespace bittrue {

class CoreSet {
 public:
  // `isa` names one of `available()`; throws std::invalid_argument otherwise.
  explicit CoreSet(const std::string& isa);

  // Instruction sets that this processor can run, the fastest first. The last one is "portable".
  static std::vector<std::string> available();
  // Every instruction set that was compiled in, whether or not this processor has it.
  static std::vector<std::string> compiled();

  const char* isa() const { return chain_.front()->isa; }
  // All cores as (instruction set that implements it, core).
  std::vector<std::pair<std::string, std::string>> rows() const;

  std::unique_ptr<Matmul> matmul(const MatmulSpec& spec) const;
  std::unique_ptr<Depthwise> depthwise(const DepthwiseSpec& spec) const;
  std::unique_ptr<Elementwise> add(const AddSpec& spec) const;
  std::unique_ptr<Elementwise> mul(const MulSpec& spec) const;
  std::unique_ptr<Elementwise> fused_sum(const FusedSumSpec& spec) const;
  MaxRows max_rows() const;
  SumRows sum_rows() const;
  Lookup lookup() const;
  RequantizeRow requantize_row() const;
  RowTerms row_terms() const;
  const RealMatmul& real_matmul() const;
  const ByteProduct& byte_product() const;
  RealTaps real_taps() const;
  RealTapsFused real_taps_fused() const;
  PeakMultiplyAdds peak_multiply_adds() const;
  QuantizeReals quantize_reals() const;
  RealFunctionCore real_function() const;
  SoftmaxRow softmax_row() const;
  NormalizeRow normalize_row() const;

 private:
  std::vector<const Cores*> chain_;  // from the chosen set down to portable
};

}  // namespace bittrue
