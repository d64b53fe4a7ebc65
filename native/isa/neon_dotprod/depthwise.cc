// Depthwise convolution: 16 channels at a time with widening multiply-adds. A table of pointers, one per input column
// (or to a pixel of zero points) and row of taps, makes all output pixels alike, whatever the padding.
#include <algorithm>

#include "isa/neon_dotprod/cores.h"
#include "isa/neon_dotprod/requantize.h"

namespace bittrue::neon_dotprod {
namespace {

constexpr int64_t kChannels = 16;
constexpr int kPixels = 4;      // whose sums stay in registers
constexpr int64_t kChunk = 16;  // output pixels whose sums wait for requantization

class VectorDepthwise final : public Depthwise {
 public:
  VectorDepthwise(const DepthwiseSpec& spec, const int64_t* columns, int64_t blocks)
      : channels_(spec.channels),
        taps_h_(spec.taps_h),
        taps_w_(spec.taps_w),
        stride_h_(spec.stride_h),
        stride_w_(spec.stride_w),
        dilation_h_(spec.dilation_h),
        dilation_w_(spec.dilation_w),
        width_(spec.width),
        out_width_(spec.out_width),
        pad_left_(spec.pad_left),
        columns_((spec.out_width - 1) * spec.stride_w + (spec.taps_w - 1) * spec.dilation_w + 1),
        blocks_(blocks),
        weights_(blocks * spec.taps_h * spec.taps_w * kChannels),
        bias_(blocks * kChannels),
        zero_pixel_(spec.channels + kChannels),
        requantizer_(spec.requantize, columns, blocks) {
    std::memset(zero_pixel_.data(), spec.zero_point, static_cast<size_t>(spec.channels + kChannels));
    const int64_t taps = taps_h_ * taps_w_;
    for (int64_t i = 0; i < blocks_ * kChannels; ++i) {
      if (columns[i] < 0) continue;
      bias_.data()[i] = spec.bias[columns[i]];
      for (int64_t t = 0; t < taps; ++t) {
        weights_.data()[(i / kChannels * taps + t) * kChannels + i % kChannels] =
            spec.weights[t * channels_ + columns[i]];
      }
    }
  }

  // Pointers to all columns; copies of narrow pixels.
  int64_t scratch() const override {
    return columns_ * taps_h_ * static_cast<int64_t>(sizeof(const uint8_t*)) + kChannels * kChannels * taps_h_;
  }
  int64_t preferred_rows() const override { return 1; }

  void run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const override {
    auto** table = reinterpret_cast<const uint8_t**>(scratch);
    uint8_t* copies = scratch + columns_ * taps_h_ * static_cast<int64_t>(sizeof(const uint8_t*));
    for (int64_t y = 0; y < count; ++y) {
      fill_table(rows + y * stride_h_, table, copies);
      for (int64_t block = 0; block < blocks_; ++block) row(table, block, out[y]);
    }
  }

 private:
  // table[i * columns + column]: the pixel of padded column `column` in the row of tap i. Vectors take 16 bytes: narrower
  // pixels at the end of a row are copied, lest bytes after the row are read.
  void fill_table(const uint8_t* const* rows, const uint8_t** table, uint8_t* copies) const {
    const int64_t bytes = width_ * channels_;
    const int64_t safe = channels_ >= kChannels ? width_ : bytes < kChannels ? 0 : (bytes - kChannels) / channels_ + 1;
    for (int64_t i = 0; i < taps_h_; ++i) {
      for (int64_t c = 0; c < columns_; ++c) {
        const int64_t column = c - pad_left_;
        const bool inside = column >= 0 && column < width_;
        const uint8_t* pixel = inside ? rows[i * dilation_h_] + column * channels_ : zero_pixel_.data();
        if (inside && column >= safe) {
          uint8_t* copy = copies + kChannels * (i * kChannels + column - safe);
          std::memcpy(copy, pixel, static_cast<size_t>(channels_));
          pixel = copy;
        }
        *table++ = pixel;
      }
    }
  }

  // One row of one block of channels.
  void row(const uint8_t* const* table, int64_t block, uint8_t* out) const {
    const int64_t first = std::max<int64_t>(0, std::min(block * kChannels, channels_ - kChannels));
    const int64_t size = std::min(channels_, kChannels);
    int32_t sums[kChunk][kChannels];
    const Store store = requantizer_.store();
    const Group& group = requantizer_.group(block);
    for (int64_t x = 0; x < out_width_; x += kChunk) {
      const int64_t count = std::min(kChunk, out_width_ - x);
      int64_t p = 0;
      for (; p + kPixels <= count; p += kPixels) add_taps<kPixels>(table, block, first, x + p, sums + p);
      for (; p < count; ++p) add_taps<1>(table, block, first, x + p, sums + p);
      with_form(requantizer_.form(), [&](auto form) {
        for (int64_t p = 0; p < count; ++p) {
          store_part(out + (x + p) * channels_ + first, requantize16<form.value>(sums[p], group, store, requantizer_),
                     size);
        }
      });
    }
  }

  // The sums of `count` output pixels from x.
  template <int count>
  __attribute__((noinline)) void add_taps(const uint8_t* const* table, int64_t block, int64_t first, int64_t x,
                                          int32_t (*result)[kChannels]) const {
    int32x4_t sums[count][4];
    unroll<count>([&](int p) __attribute__((always_inline)) {
      unroll<4>([&](int v) __attribute__((always_inline)) {
        sums[p][v] = vld1q_s32(bias_.data() + block * kChannels + 4 * v);
      });
    });
    const int16_t* weights = weights_.data() + block * taps_h_ * taps_w_ * kChannels;
    for (int64_t i = 0; i < taps_h_; ++i) {
      const uint8_t* const* pixel = table + i * columns_ + x * stride_w_;
      for (int64_t j = 0; j < taps_w_; ++j, weights += kChannels, pixel += dilation_w_) {
        const int16x8_t w0 = vld1q_s16(weights), w1 = vld1q_s16(weights + 8);
        unroll<count>([&](int p) __attribute__((always_inline)) {
          const uint8x16_t bytes = vld1q_u8(pixel[p * stride_w_] + first);
          const int16x8_t lower = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes)));
          const int16x8_t upper = vreinterpretq_s16_u16(vmovl_high_u8(bytes));
          sums[p][0] = vmlal_s16(sums[p][0], vget_low_s16(lower), vget_low_s16(w0));
          sums[p][1] = vmlal_high_s16(sums[p][1], lower, w0);
          sums[p][2] = vmlal_s16(sums[p][2], vget_low_s16(upper), vget_low_s16(w1));
          sums[p][3] = vmlal_high_s16(sums[p][3], upper, w1);
        });
      }
    }
    unroll<count>([&](int p) __attribute__((always_inline)) {
      unroll<4>([&](int v) __attribute__((always_inline)) { vst1q_s32(result[p] + 4 * v, sums[p][v]); });
    });
  }

  int64_t channels_, taps_h_, taps_w_, stride_h_, stride_w_, dilation_h_, dilation_w_, width_, out_width_, pad_left_;
  int64_t columns_;  // of the padded input that some output reads
  int64_t blocks_;
  AlignedArray<int16_t> weights_;  // [block][tap][channel]
  AlignedArray<int32_t> bias_;     // [block][channel]
  AlignedArray<uint8_t> zero_pixel_;
  Requantizer requantizer_;
};

}  // namespace

// The last block covers some channels a second time rather than being shorter.
std::unique_ptr<Depthwise> make_depthwise(const DepthwiseSpec& spec) {
  if (spec.pairs) return nullptr;
  const int64_t blocks = (spec.channels + kChannels - 1) / kChannels;
  AlignedArray<int64_t> columns(blocks * kChannels);
  for (int64_t i = 0; i < blocks * kChannels; ++i) {
    const int64_t begin = std::max<int64_t>(0, std::min(i / kChannels * kChannels, spec.channels - kChannels));
    const int64_t channel = begin + i % kChannels;
    columns.data()[i] = channel < spec.channels ? channel : -1;
  }
  return std::unique_ptr<Depthwise>(new VectorDepthwise(spec, columns.data(), blocks));
}

}  // namespace bittrue::neon_dotprod
