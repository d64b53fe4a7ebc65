#include "operators/quantization/dynamic_scale.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace bittrue {

Extremes extremes_of(const float* in, int64_t count) {
  constexpr int kLanes = 32;
  float low[kLanes] = {}, high[kLanes] = {};
  int32_t missing[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float x = in[i + lane];
      low[lane] = x < low[lane] ? x : low[lane];
      high[lane] = x > high[lane] ? x : high[lane];
      missing[lane] |= x != x;
    }
  }
  Extremes result;
  for (int lane = 0; lane < kLanes; ++lane) {
    result.low = std::min(result.low, low[lane]);
    result.high = std::max(result.high, high[lane]);
    result.missing |= missing[lane];
  }
  for (; i < count; ++i) {
    result.low = in[i] < result.low ? in[i] : result.low;
    result.high = in[i] > result.high ? in[i] : result.high;
    result.missing |= in[i] != in[i];
  }
  return result;
}

DynamicScale dynamic_scale(const Extremes& all) {
  const float scale = all.high == all.low ? 1.0f : (all.high - all.low) / 255.0f;
  float point = 0.0f - all.low / scale;
  point = point < 255.0f ? point : 255.0f;
  point = point > 0.0f ? point : 0.0f;
  return {scale, static_cast<int32_t>(std::nearbyint(point))};
}

bool has_dynamic_scale(const Step& step) {
  const std::string& rule = step.rule("dynamic_range");
  return rule == "binary32_over_255_by_eights" || rule == "binary32_over_255_by_fours";
}

QuantizeSpec all_bytes(const DynamicScale& to) {
  const auto zero_point = static_cast<float>(to.zero_point);
  return {to.scale, -zero_point, 255.0f - zero_point, to.zero_point};
}

}  // namespace bittrue
