// Depthwise convolution in plain C++.
#include <algorithm>
#include <vector>

#include "isa/portable/cores.h"
#include "isa/portable/requantize.h"

namespace bittrue::portable {
namespace {

constexpr int64_t kChannels = 32;  // at a time, their sums in the nearest cache

class PortableDepthwise final : public Depthwise {
 public:
  explicit PortableDepthwise(const DepthwiseSpec& spec)
      : spec_(spec),
        weights_(spec.weights, spec.weights + spec.taps_h * spec.taps_w * spec.channels),
        bias_(spec.bias, spec.bias + spec.channels),
        zero_pixel_(static_cast<size_t>(spec.channels), spec.zero_point),
        requantizer_(spec.requantize) {
    weights_.resize(weights_.size() + static_cast<size_t>(spec.channels), 0);
    spec_.weights = nullptr;
    spec_.bias = nullptr;
    spec_.requantize = {};
  }

  // Where the taps of one output pixel are.
  int64_t scratch() const override {
    return spec_.taps_h * spec_.taps_w * static_cast<int64_t>(sizeof(const uint8_t*));
  }
  int64_t preferred_rows() const override { return 1; }

  void run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const override {
    auto** taps = reinterpret_cast<const uint8_t**>(scratch);
    for (int64_t y = 0; y < count; ++y) {
      for (int64_t x = 0; x < spec_.out_width; ++x) {
        find_taps(rows + y * spec_.stride_h, x * spec_.stride_w - spec_.pad_left, taps);
        uint8_t* target = out[y] + x * spec_.channels;
        for (int64_t c = 0; c < spec_.channels; c += kChannels) {
          const int64_t count_here = std::min(kChannels, spec_.channels - c);
          int32_t acc[kChannels];
          if (count_here == kChannels) {
            accumulate<kChannels>(taps, c, kChannels, acc);
          } else {
            accumulate<0>(taps, c, count_here, acc);
          }
          requantizer_.run(acc, c, count_here, target + c);
        }
      }
    }
  }

 private:
  void find_taps(const uint8_t* const* rows, int64_t left, const uint8_t** taps) const {
    for (int64_t i = 0; i < spec_.taps_h; ++i) {
      for (int64_t j = 0; j < spec_.taps_w; ++j) {
        const int64_t column = left + j * spec_.dilation_w;
        const bool outside = column < 0 || column >= spec_.width;
        *taps++ = outside ? zero_pixel_.data() : rows[i * spec_.dilation_h] + column * spec_.channels;
      }
    }
  }

  // |product| <= 255 * 255; the sums are modulo 2^32. With `fixed` channels the loops need no tails.
  template <int64_t fixed>
  void accumulate(const uint8_t* const* taps, int64_t first, int64_t some, int32_t* acc) const {
    const int64_t count = fixed > 0 ? fixed : some;
    const int64_t taps_count = spec_.taps_h * spec_.taps_w, channels = spec_.channels;
    const int16_t* weights = weights_.data() + first;
    uint32_t sums[kChannels];
    for (int64_t c = 0; c < count; ++c) sums[c] = static_cast<uint32_t>(bias_[first + c]);
    if (spec_.pairs) {
      const int16_t* none = weights_.data() + taps_count * channels;
      for (int64_t t = 0; t < taps_count; t += 2) {
        const bool both = t + 1 < taps_count;
        const uint8_t *one = taps[t] + first, *two = taps[both ? t + 1 : t] + first;
        add_pairs<fixed>(one, two, weights + t * channels, both ? weights + (t + 1) * channels : none, count, sums);
      }
      for (int64_t t = 0; t < taps_count && spec_.weight_zero_point != 0; ++t) {
        const auto zero_point = static_cast<uint32_t>(spec_.weight_zero_point);
        for (int64_t c = 0; c < count; ++c) sums[c] -= zero_point * taps[t][first + c];
      }
    } else {
      for (int64_t t = 0; t < taps_count; ++t)
        add_products<fixed>(taps[t] + first, weights + t * channels, count, sums);
    }
    for (int64_t c = 0; c < count; ++c) acc[c] = static_cast<int32_t>(sums[c]);
  }

  // Not inlined: GCC 12 would exchange this loop with the one over taps and then not vectorise it.
  template <int64_t fixed>
  __attribute__((noinline)) static void add_products(const uint8_t* __restrict in, const int16_t* __restrict weights,
                                                     int64_t some, uint32_t* __restrict sums) {
    const int64_t count = fixed > 0 ? fixed : some;
    for (int64_t c = 0; c < count; ++c) {
      const int16_t value = in[c];
      sums[c] += static_cast<uint32_t>(weights[c] * value);
    }
  }

  // In 16 bits throughout: products of 0..255 and -128..127 fit, and a sum that leaves them has the other sign than both.
  template <int64_t fixed>
  __attribute__((noinline)) static void add_pairs(const uint8_t* __restrict one, const uint8_t* __restrict two,
                                                  const int16_t* __restrict first, const int16_t* __restrict second,
                                                  int64_t some, uint32_t* __restrict sums) {
    const int64_t count = fixed > 0 ? fixed : some;
    for (int64_t c = 0; c < count; ++c) {
      const auto left = static_cast<int16_t>(one[c] * first[c]), right = static_cast<int16_t>(two[c] * second[c]);
      const auto sum = static_cast<int16_t>(static_cast<uint16_t>(left) + static_cast<uint16_t>(right));
      const auto beyond = static_cast<int16_t>((left ^ sum) & (right ^ sum));
      const auto end = static_cast<int16_t>((left >> 15) ^ 0x7fff);
      sums[c] += static_cast<uint32_t>(int32_t{beyond < 0 ? end : sum});
    }
  }

  DepthwiseSpec spec_;
  std::vector<int16_t> weights_;  // and no weights for one tap more
  std::vector<int32_t> bias_;
  std::vector<uint8_t> zero_pixel_;
  Requantizer requantizer_;
};

}  // namespace

std::unique_ptr<Depthwise> make_depthwise(const DepthwiseSpec& spec) {
  return std::make_unique<PortableDepthwise>(spec);
}

}  // namespace bittrue::portable
