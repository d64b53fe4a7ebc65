// The sums of a layer with their bias and another tensor, in binary32: alone, or inside of the layer.
#pragma once

#include <cstdint>
#include <vector>

#include "core/core_set.h"
#include "core/step.h"

namespace bittrue {

inline bool is_sum_of_layer(const Step& step) { return step.rules.count("layer_sum") != 0; }

// Of a step whose result is 8-bit and whose ranges are known, one bias and factor per channel.
class LayerSum {
 public:
  LayerSum() = default;
  // NoKernel when it is no such step.
  LayerSum(const Step& step, const CoreSet& cores, int64_t channels);

  explicit operator bool() const { return core_ != nullptr; }

  // `count` channels of one position, from channel `first` on.
  void row(const int32_t* acc, const uint8_t* other, uint8_t* out, int64_t first, int64_t count) const {
    core_(spec_, acc, bias_.data() + first, factors_.data() + first, other, out, count);
  }
  // `count` positions of channel `channel`.
  void channel(const int32_t* acc, const uint8_t* other, uint8_t* out, int64_t channel, int64_t count) const;

 private:
  std::vector<float> bias_, factors_;
  LayerSumSpec spec_;
  LayerSums core_ = nullptr;
};

}  // namespace bittrue
