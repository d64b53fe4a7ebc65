// Depthwise convolution: 16 channels at a time, two taps per vpmaddwd.
//
// Two taps' bytes are widened to 16 bits and interleaved, so that one 32-bit word holds both taps of a channel; their
// products with the interleaved weights fit: 2 * 255 * 255 < 2^31. A table of pointers, one per input column (or to a
// pixel of zero points) and row of taps, makes all output pixels alike, whatever the padding.
#if !defined(__AVXVNNI__)

#include <algorithm>

#include "isa/avx2/cores.h"
#include "isa/avx2/requantize.h"
#include "isa/avx2/vectors.h"

namespace bittrue::BITTRUE_ISA {
namespace {

// What the 16 lanes of a vector hold.
enum class Lanes : uint8_t {
  one_pixel,   // 16 channels
  two_pixels,  // 8 channels of each
  few,         // the same with all of fewer than 8 channels
};

struct Block {
  int64_t first = 0;  // channel
  Lanes lanes = Lanes::one_pixel;
};

// Blocks cover the channels; the last one may cover some a second time.
int64_t block_count(int64_t channels) { return channels / 16 + (channels % 16 > 8 && channels < 16 ? 2 : channels % 16 != 0); }

Block block_at(int64_t channels, int64_t i) {
  if (channels < 8) return {0, Lanes::few};
  if (channels < 16) return {i == 0 ? 0 : channels - 8, Lanes::two_pixels};
  if (i < channels / 16) return {16 * i, Lanes::one_pixel};
  return channels % 16 <= 8 ? Block{channels - 8, Lanes::two_pixels} : Block{channels - 16, Lanes::one_pixel};
}

// The channel of byte `byte`; -1 where there is none.
int64_t channel_of(const Block& block, int64_t channels, int byte) {
  const int64_t channel = block.first + (block.lanes == Lanes::one_pixel ? byte : byte % 8);
  return channel < channels ? channel : -1;
}

class VectorDepthwise final : public Depthwise {
 public:
  VectorDepthwise(const DepthwiseSpec& spec, const int64_t* byte_columns)
      : channels_(spec.channels),
        taps_h_(spec.taps_h),
        stride_h_(spec.stride_h),
        stride_w_(spec.stride_w),
        dilation_h_(spec.dilation_h),
        width_(spec.width),
        out_width_(spec.out_width),
        pad_left_(spec.pad_left),
        columns_((spec.out_width - 1) * spec.stride_w + (spec.taps_w - 1) * spec.dilation_w + 1),
        pairs_((spec.taps_h * spec.taps_w + 1) / 2),
        dense_(spec.dilation_w == 1),
        blocks_(block_count(spec.channels)),
        tap_index_(2 * pairs_),
        weights_(blocks_ * pairs_ * 32),
        bias_(blocks_ * 16),
        zero_pixel_(spec.channels + 16),
        requantizer_(spec.requantize, Choice(spec.requantize), byte_columns, blocks_) {
    std::memset(zero_pixel_.data(), spec.zero_point, static_cast<size_t>(spec.channels + 16));
    const int64_t taps = taps_h_ * spec.taps_w;
    for (int64_t t = 0; t < taps; ++t) tap_index_.data()[t] = t / taps_h_ * spec.dilation_w * taps_h_ + t % taps_h_;
    for (int64_t b = 0; b < blocks_; ++b) {
      for (int byte = 0; byte < 16; ++byte) {
        const int64_t channel = byte_columns[16 * b + byte];
        if (channel < 0) continue;
        const int i = accumulator_of_byte(byte);
        bias_.data()[16 * b + i] =
            static_cast<int32_t>(static_cast<uint32_t>(spec.bias[channel]) + requantizer_.offset());
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t tap = t % taps_h_ * spec.taps_w + t / taps_h_;
          weights_.data()[(b * pairs_ + t / 2) * 32 + 2 * i + t % 2] = spec.weights[tap * channels_ + channel];
        }
      }
    }
  }

  // Pointers to all columns, and one that is read but not used after an odd number of taps.
  int64_t scratch() const override { return (columns_ * taps_h_ + 1) * static_cast<int64_t>(sizeof(const uint8_t*)); }
  int64_t preferred_rows() const override { return 1; }

  void run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const override {
    auto** table = reinterpret_cast<const uint8_t**>(scratch);
    const RoundingMode mode(requantizer_.form());
    for (int64_t y = 0; y < count; ++y) {
      fill_table(rows + y * stride_h_, table);
      with_form(requantizer_.form(), [&](auto form) {
        for (int64_t b = 0; b < blocks_; ++b) {
          const Block block = block_at(channels_, b);
          switch (block.lanes) {
            case Lanes::one_pixel: any_row<form.value, Lanes::one_pixel>(table, b, block, out[y]); break;
            case Lanes::two_pixels: any_row<form.value, Lanes::two_pixels>(table, b, block, out[y]); break;
            case Lanes::few: any_row<form.value, Lanes::few>(table, b, block, out[y]); break;
          }
        }
      });
    }
  }

 private:
  static constexpr int kVectors = 2;  // at a time, sharing the loads of weights

  // table[column * taps_h + i]: the pixel of padded column `column` in the row of tap i.
  void fill_table(const uint8_t* const* rows, const uint8_t** table) const {
    for (int64_t c = 0; c < columns_; ++c) {
      const int64_t column = c - pad_left_;
      const bool inside = column >= 0 && column < width_;
      for (int64_t i = 0; i < taps_h_; ++i) {
        *table++ = inside ? rows[i * dilation_h_] + column * channels_ : zero_pixel_.data();
      }
    }
    *table = zero_pixel_.data();
  }

  template <Form form, Lanes lanes>
  void any_row(const uint8_t* const* table, int64_t index, const Block& block, uint8_t* out) const {
    if (pairs_ == 5 && dense_) {
      row<form, lanes, 5>(table, index, block, out);
    } else {
      row<form, lanes, 0>(table, index, block, out);
    }
  }

  template <Lanes lanes>
  __attribute__((always_inline)) __m256i load(const uint8_t* first, const uint8_t* second) const {
    if constexpr (lanes == Lanes::one_pixel) {
      return _mm256_cvtepu8_epi16(load16(first));
    } else if constexpr (lanes == Lanes::two_pixels) {
      return _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(load8(first), load8(second)));
    } else {
      uint64_t both[2] = {};
      std::memcpy(&both[0], first, static_cast<size_t>(channels_));
      std::memcpy(&both[1], second, static_cast<size_t>(channels_));
      return _mm256_cvtepu8_epi16(load16(both));
    }
  }

  // One row of one block. With `fixed` pairs of taps, all of them adjacent in the table; otherwise any number.
  template <Form form, Lanes lanes, int fixed>
  __attribute__((noinline)) void row(const uint8_t* const* table, int64_t index, const Block& block, uint8_t* out) const {
    constexpr int pixels = kVectors * (lanes == Lanes::one_pixel ? 1 : 2);
    const int16_t* weights = weights_.data() + index * pairs_ * 32;
    const int32_t* bias = bias_.data() + 16 * index;
    const Group& group = requantizer_.group(index);
    const Store store = requantizer_.store();
    const int64_t pairs = fixed > 0 ? fixed : pairs_, first = block.first, step = stride_w_ * taps_h_;
    for (int64_t x = 0; x < out_width_; x += pixels) {
      const uint8_t* const* pixel[pixels];
      unroll<pixels>([&](auto p) __attribute__((always_inline)) {
        pixel[p] = table + std::min<int64_t>(x + p, out_width_ - 1) * step;
      });
      __m256i sums[kVectors][2];
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
        sums[v][0] = load32(bias);
        sums[v][1] = load32(bias + 8);
      });
      const auto multiply = [&](int64_t p) __attribute__((always_inline)) {
        const __m256i w0 = load32(weights + 32 * p), w1 = load32(weights + 32 * p + 16);
        const int64_t t0 = fixed > 0 ? 2 * p : tap_index_.data()[2 * p];
        const int64_t t1 = fixed > 0 ? 2 * p + 1 : tap_index_.data()[2 * p + 1];
        unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
          const uint8_t* const* left = pixel[lanes == Lanes::one_pixel ? v : 2 * v];
          const uint8_t* const* right = pixel[lanes == Lanes::one_pixel ? v : 2 * v + 1];
          const __m256i a = load<lanes>(left[t0] + first, right[t0] + first);
          const __m256i b = load<lanes>(left[t1] + first, right[t1] + first);
          sums[v][0] = _mm256_add_epi32(sums[v][0], _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w0));
          sums[v][1] = _mm256_add_epi32(sums[v][1], _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w1));
        });
      };
      if constexpr (fixed > 0) {
        unroll<fixed>(multiply);
      } else {
        for (int64_t p = 0; p < pairs; ++p) multiply(p);
      }
      store_pixels<form, lanes>(sums, group, store, std::min<int64_t>(pixels, out_width_ - x),
                                out + x * channels_ + first);
    }
  }

  template <Form form, Lanes lanes>
  __attribute__((always_inline)) void store_pixels(const __m256i (&sums)[kVectors][2], const Group& group,
                                                   const Store& store, int64_t count, uint8_t* out) const {
    __m128i bytes[2];
    if constexpr (form == Form::scalar) {
      alignas(32) int32_t acc[16];
      alignas(16) uint8_t made[16];
      for (int v = 0; v < kVectors; ++v) {
        store32(acc, sums[v][0]);
        store32(acc + 8, sums[v][1]);
        requantizer_.requantize_scalar(acc, group, made);
        bytes[v] = load16(made);
      }
    } else {
      const __m256i both = pack(requantize16<form>(sums[0][0], sums[0][1], group, store),
                                requantize16<form>(sums[1][0], sums[1][1], group, store), store);
      bytes[0] = _mm256_castsi256_si128(both);
      bytes[1] = _mm256_extracti128_si256(both, 1);
    }
    if constexpr (lanes == Lanes::one_pixel) {
      store16(out, bytes[0]);
      if (count > 1) store16(out + channels_, bytes[1]);
    } else {
      const __m128i quarters[4] = {bytes[0], _mm_srli_si128(bytes[0], 8), bytes[1], _mm_srli_si128(bytes[1], 8)};
      unroll<4>([&](auto p) __attribute__((always_inline)) {
        if (p >= count) return;
        if constexpr (lanes == Lanes::two_pixels) {
          store8(out + p * channels_, quarters[p]);
        } else {
          store_part(out + p * channels_, quarters[p], channels_);
        }
      });
    }
  }

  int64_t channels_, taps_h_, stride_h_, stride_w_, dilation_h_, width_, out_width_, pad_left_;
  int64_t columns_;  // of the padded input that some output reads
  int64_t pairs_;    // of taps, taken column by column
  bool dense_;       // taps that follow one another read adjacent columns
  int64_t blocks_;
  AlignedArray<int64_t> tap_index_;  // in the table, from the first column of the output pixel
  AlignedArray<int16_t> weights_;    // [block][pair][accumulator][tap of the pair]
  AlignedArray<int32_t> bias_;       // [block][accumulator], moved by the requantizer's offset
  AlignedArray<uint8_t> zero_pixel_;
  Requantizer requantizer_;
};

}  // namespace

std::unique_ptr<Depthwise> make_depthwise(const DepthwiseSpec& spec) {
  const int64_t blocks = block_count(spec.channels);
  AlignedArray<int64_t> columns(16 * blocks);
  for (int64_t i = 0; i < 16 * blocks; ++i) {
    columns.data()[i] = channel_of(block_at(spec.channels, i / 16), spec.channels, static_cast<int>(i % 16));
  }
  return std::unique_ptr<Depthwise>(new VectorDepthwise(spec, columns.data()));
}

}  // namespace bittrue::BITTRUE_ISA

#endif
