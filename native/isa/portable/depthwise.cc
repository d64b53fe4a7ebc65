// Depthwise convolution in plain C++.
#include <vector>

#include "isa/portable/cores.h"

namespace bittrue::portable {
namespace {

class PortableDepthwise final : public Depthwise {
 public:
  explicit PortableDepthwise(const DepthwiseSpec& spec)
      : spec_(spec),
        weights_(spec.weights, spec.weights + spec.taps_h * spec.taps_w * spec.channels),
        bias_(spec.bias, spec.bias + spec.channels) {
    spec_.weights = nullptr;
    spec_.bias = nullptr;
  }

  int64_t scratch() const override { return spec_.channels * static_cast<int64_t>(sizeof(uint32_t)); }
  int64_t preferred_rows() const override { return 1; }

  void run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const override {
    auto* acc = reinterpret_cast<uint32_t*>(scratch);
    for (int64_t y = 0; y < count; ++y) {
      for (int64_t x = 0; x < spec_.out_width; ++x) {
        accumulate(rows + y * spec_.stride_h, x * spec_.stride_w - spec_.pad_left, acc);
        uint8_t* target = out[y] + x * spec_.channels;
        for (int64_t c = 0; c < spec_.channels; ++c) {
          target[c] = static_cast<uint8_t>(
              rules::requantize(spec_.requantize, static_cast<int32_t>(acc[c]), static_cast<size_t>(c)));
        }
      }
    }
  }

 private:
  void accumulate(const uint8_t* const* rows, int64_t left, uint32_t* acc) const {
    const int64_t channels = spec_.channels;
    for (int64_t c = 0; c < channels; ++c) acc[c] = static_cast<uint32_t>(bias_[c]);
    for (int64_t i = 0; i < spec_.taps_h; ++i) {
      for (int64_t j = 0; j < spec_.taps_w; ++j) {
        const int16_t* weights = weights_.data() + (i * spec_.taps_w + j) * channels;
        const int64_t column = left + j * spec_.dilation_w;
        if (column < 0 || column >= spec_.width) {
          for (int64_t c = 0; c < channels; ++c) acc[c] += static_cast<uint32_t>(weights[c] * spec_.zero_point);
        } else {
          const uint8_t* pixel = rows[i * spec_.dilation_h] + column * channels;
          for (int64_t c = 0; c < channels; ++c) acc[c] += static_cast<uint32_t>(weights[c] * pixel[c]);
        }
      }
    }
  }

  DepthwiseSpec spec_;
  std::vector<int16_t> weights_;
  std::vector<int32_t> bias_;
};

}  // namespace

std::unique_ptr<Depthwise> make_depthwise(const DepthwiseSpec& spec) {
  return std::make_unique<PortableDepthwise>(spec);
}

}  // namespace bittrue::portable
