// Depthwise convolution: 16 channels at a time, two taps per vpmaddwd.
//
// Two taps' bytes are widened to 16 bits and interleaved, so that one 32-bit word holds both taps of a channel; their
// products with the interleaved weights fit: 2 * 255 * 255 < 2^31. A table of pointers, one per input column (or to a
// pixel of zero points) and row of taps, makes all output pixels alike, whatever the padding. Where the sums of pairs are to
// saturate, they are clamped before they are added, and the pairs are those of the contract.
//
// Of 3 x 3 taps, neighbouring pixels share what is interleaved: the upper two rows of every column, and the lowest row of
// every two columns. Of 8 channels, two neighbours are one such pixel, two columns from the next, in copies of the rows with
// zero points around them. Sums of a line wait in the first-level cache until all are requantized at once: of two pixels alone,
// requantization would take as long as the taps, most of it waiting.
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
  two_pixels,  // 8 channels of each, or all when there are fewer
};

// What is made of the sum of a pair.
enum class Pair : uint8_t {
  exact,
  clamped,
  clamped_and_moved,  // and less the zero point of the weights times both values
};

struct Block {
  int64_t first = 0;  // channel
  Lanes lanes = Lanes::one_pixel;
};

// Blocks cover the channels; the last one may cover some a second time.
int64_t block_count(int64_t channels) {
  if (channels < 16) return channels > 8 ? 2 : 1;
  return (channels + 15) / 16;
}

Block block_at(int64_t channels, int64_t i) {
  if (channels < 16) return {i == 0 ? 0 : channels - 8, Lanes::two_pixels};
  if (i < channels / 16) return {16 * i, Lanes::one_pixel};
  return channels % 16 <= 8 ? Block{channels - 8, Lanes::two_pixels} : Block{channels - 16, Lanes::one_pixel};
}

// The channel of byte `byte`; -1 where there is none.
int64_t channel_of(const Block& block, int64_t channels, int byte) {
  const int64_t channel = block.first + (block.lanes == Lanes::one_pixel ? byte : byte % 8);
  return channel < channels ? channel : -1;
}

constexpr int64_t kChunk = 64;  // vectors of sums that wait for requantization, an even number

// The last one takes what is added beside the last of an odd number.
struct alignas(32) Sums {
  int32_t values[kChunk + 1][16];
};

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
        shares_(dense_ && !spec.pairs && spec.taps_h == 3 && spec.taps_w == 3 && spec.stride_w <= 2),
        neighbours_(shares_ && spec.channels == 8 && spec.stride_w == 1),
        pair_(!spec.pairs                   ? Pair::exact
              : spec.weight_zero_point == 0 ? Pair::clamped
                                            : Pair::clamped_and_moved),
        blocks_(block_count(spec.channels)),
        tap_index_(2 * pairs_),
        moved_(pairs_),
        weights_(blocks_ * pairs_ * 32),
        shared_weights_(shares_ ? blocks_ * kShared * 32 : 0),
        bias_(blocks_ * 16),
        zero_pixel_(spec.channels + 16),
        requantizer_(spec.requantize, byte_columns, blocks_, !spec.pairs, [&] { return ranges_of(spec); }) {
    std::memset(zero_pixel_.data(), spec.zero_point, static_cast<size_t>(spec.channels + 16));
    const int64_t taps = taps_h_ * spec.taps_w;
    // Taps of exact pairs come column by column, as their pixels do in the table.
    const auto row_of = [&](int64_t t) { return spec.pairs ? t / spec.taps_w : t % taps_h_; };
    const auto column_of = [&](int64_t t) { return spec.pairs ? t % spec.taps_w : t / taps_h_; };
    for (int64_t t = 0; t < taps; ++t) {
      tap_index_.data()[t] = column_of(t) * spec.dilation_w * taps_h_ + row_of(t);
      auto* pair = reinterpret_cast<int16_t*>(moved_.data() + t / 2);
      pair[t % 2] = static_cast<int16_t>(-spec.weight_zero_point);
    }
    for (int64_t b = 0; b < blocks_; ++b) {
      for (int byte = 0; byte < 16; ++byte) {
        const int64_t channel = byte_columns[16 * b + byte];
        if (channel < 0) continue;
        const int i = accumulator_of_byte(byte);
        bias_.data()[16 * b + i] =
            static_cast<int32_t>(static_cast<uint32_t>(spec.bias[channel]) + requantizer_.offset());
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t tap = row_of(t) * spec.taps_w + column_of(t);
          const int16_t weight = spec.weights[tap * channels_ + channel];
          weights_.data()[(b * pairs_ + t / 2) * 32 + 2 * i + t % 2] = weight;
          if (shares_) share(b, i, row_of(t), column_of(t), weight);
        }
      }
    }
  }

  // Pointers to all columns, and one that is read but not used after an odd number of taps; copies of narrow pixels, or of rows.
  int64_t scratch() const override {
    return (columns_ * taps_h_ + 1) * static_cast<int64_t>(sizeof(const uint8_t*)) +
           (neighbours_ ? 3 * copy_bytes() : 64 * taps_h_);
  }
  int64_t preferred_rows() const override { return 1; }

  void run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const override {
    auto** table = reinterpret_cast<const uint8_t**>(scratch);
    uint8_t* copies = scratch + (columns_ * taps_h_ + 1) * static_cast<int64_t>(sizeof(const uint8_t*));
    // Whether a block has two pixels in each vector that are no neighbours.
    const bool apart = !neighbours_ && block_at(channels_, blocks_ - 1).lanes == Lanes::two_pixels;
    Copied copied;
    if (neighbours_) std::memset(copies, zero_pixel_.data()[0], static_cast<size_t>(3 * copy_bytes()));
    const RoundingMode mode(requantizer_.form());
    for (int64_t y = 0; y < count; ++y) {
      const uint8_t* const* taps = rows + y * stride_h_;
      const int64_t together = shares_ && !neighbours_ && !apart ? lines_together(out + y, count - y) : 1;
      if (together > 1) {
        short_lines(taps, together, out[y]);
        y += together - 1;
        continue;
      }
      Lines lines{};
      if (shares_) lines = neighbours_ ? copy_rows(taps, copied, copies) : lines_of(taps);
      if (!shares_ || apart) fill_table(taps, table, copies);
      for (int64_t b = 0; b < blocks_; ++b) row(lines, table, b, out[y]);
    }
  }

 private:
  static constexpr int64_t kShared = 7;  // pairs of weights that neighbours need, see share()
  static constexpr int64_t kSpare = 4;   // columns that are read but not used, at most

  // The three rows of 3 x 3 taps: pixel p of the padded row lies at rows[i] + (p - before) * step, or is `outside`.
  struct Lines {
    const uint8_t* rows[3];
    int64_t before, width, step;
  };

  // Which rows lie in the three copies.
  struct Copied {
    const uint8_t* rows[3] = {};
  };

  int64_t copy_bytes() const { return 8 * (columns_ + kSpare); }

  Lines lines_of(const uint8_t* const* rows) const {
    return {{rows[0], rows[dilation_h_], rows[2 * dilation_h_]}, pad_left_, width_, channels_};
  }

  // The weight of a tap where shared_row() wants it: pairs 0 to 2 are the upper rows' columns. Then the lowest row's, of the first
  // pixel: 3 for columns 0 and 1, 4 for column 2. The next pixel is one column further, and has 5 and 6 for the same pairs of
  // columns, if the stride is 1.
  void share(int64_t block, int i, int64_t row, int64_t column, int16_t weight) {
    const auto put = [&](int64_t pair, int64_t place) {
      shared_weights_.data()[(block * kShared + pair) * 32 + 2 * i + place] = weight;
    };
    if (row < 2) return put(column, row);
    put(3 + column / 2, column % 2);
    put(5 + (column + 1) / 2, (column + 1) % 2);
  }

  // For images of any bytes.
  static AlignedArray<Range> ranges_of(const DepthwiseSpec& spec) {
    AlignedArray<Range> result(spec.channels);
    for (int64_t c = 0; c < spec.channels; ++c) {
      int64_t least = spec.bias[c], greatest = least;
      for (int64_t t = 0; t < spec.taps_h * spec.taps_w; ++t) {
        const int64_t term = int64_t{255} * spec.weights[t * spec.channels + c];
        (term < 0 ? least : greatest) += term;
      }
      result.data()[c] = {static_cast<double>(least), static_cast<double>(greatest)};
    }
    return result;
  }

  // table[column * taps_h + i]: the pixel of padded column `column` in the row of tap i. Vectors take at least 8 bytes:
  // narrower pixels at the end of a row are copied, lest bytes after the row are read.
  void fill_table(const uint8_t* const* rows, const uint8_t** table, uint8_t* copies) const {
    const int64_t bytes = width_ * channels_, safe = channels_ >= 8 ? width_
                                                     : bytes < 8    ? 0
                                                                    : (bytes - 8) / channels_ + 1;
    for (int64_t c = 0; c < columns_; ++c) {
      const int64_t column = c - pad_left_;
      const bool inside = column >= 0 && column < width_;
      for (int64_t i = 0; i < taps_h_; ++i) {
        const uint8_t* pixel = inside ? rows[i * dilation_h_] + column * channels_ : zero_pixel_.data();
        if (inside && column >= safe) {
          uint8_t* copy = copies + 8 * ((column - safe) * taps_h_ + i);
          std::memcpy(copy, pixel, static_cast<size_t>(channels_));
          pixel = copy;
        }
        *table++ = pixel;
      }
    }
    *table = zero_pixel_.data();
  }

  // Copies of rows of 8 channels, with zero points around them that are there already. Lines share rows.
  Lines copy_rows(const uint8_t* const* rows, Copied& copied, uint8_t* copies) const {
    Lines lines{{}, 0, columns_ + kSpare, 8};
    Copied now;
    bool taken[3] = {};
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t at = 0; at < 3 && lines.rows[i] == nullptr; ++at) {
        if (copied.rows[at] != rows[i * dilation_h_] || taken[at]) continue;
        taken[at] = true;
        now.rows[at] = copied.rows[at];
        lines.rows[i] = copies + at * copy_bytes();
      }
    }
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t at = 0; at < 3 && lines.rows[i] == nullptr; ++at) {
        if (taken[at]) continue;
        taken[at] = true;
        now.rows[at] = rows[i * dilation_h_];
        uint8_t* copy = copies + at * copy_bytes();
        std::memcpy(copy + 8 * pad_left_, now.rows[at],
                    static_cast<size_t>(8 * std::min(width_, columns_ - pad_left_)));
        lines.rows[i] = copy;
      }
    }
    copied = now;
    return lines;
  }

  // How many lines' sums have room together and have results that lie one behind the other.
  int64_t lines_together(uint8_t* const* out, int64_t count) const {
    const int64_t most = std::min(count, kChunk / out_width_);
    int64_t lines = 1;
    while (lines < most && out[lines] == out[0] + lines * out_width_ * channels_) ++lines;
    return lines;
  }

  // Such lines, all blocks of channels.
  void short_lines(const uint8_t* const* rows, int64_t count, uint8_t* out) const {
    Sums sums;
    for (int64_t b = 0; b < blocks_; ++b) {
      const int64_t first = block_at(channels_, b).first;
      for (int64_t y = 0; y < count; ++y) {
        const Lines lines = lines_of(rows + y * stride_h_);
        int32_t* to = sums.values[y * out_width_];
        if (stride_w_ == 1) {
          shared_row<1>(lines, b, first, 0, out_width_, to);
        } else {
          shared_row<2>(lines, b, first, 0, out_width_, to);
        }
      }
      with_form(requantizer_.form(),
                [&](auto form) { requantize<form.value>(b, sums, count * out_width_, out + first); });
    }
  }

  // One row of one block of channels.
  void row(const Lines& lines, const uint8_t* const* table, int64_t index, uint8_t* out) const {
    const Block block = block_at(channels_, index);
    const int64_t pixels = block.lanes == Lanes::one_pixel ? kChunk : 2 * kChunk;
    const bool fixed = dense_ && pairs_ == 5;  // 3x3 taps without dilation, unrolled
    const bool shared = shares_ && (block.lanes == Lanes::one_pixel || neighbours_);
    Sums sums;
    for (int64_t x = 0; x < out_width_; x += pixels) {
      const int64_t count = std::min(pixels, out_width_ - x);
      const auto add = [&](auto lanes) {
        with_constant<Pair, Pair::exact, Pair::clamped, Pair::clamped_and_moved>(pair_, [&](auto pair) {
          // Unrolled, zero points would fill the registers.
          if (fixed && pair.value != Pair::clamped_and_moved) {
            constexpr Pair kPair = pair.value == Pair::exact ? Pair::exact : Pair::clamped;
            add_taps<lanes.value, kPair, 5>(table, index, block, x, count, sums);
          } else {
            add_taps<lanes.value, pair.value, 0>(table, index, block, x, count, sums);
          }
        });
      };
      if (shared && stride_w_ == 1 && !neighbours_) {
        shared_row<1>(lines, index, block.first, x, count, sums.values[0]);
      } else if (shared) {
        // Vectors of two pixels of 8 channels are two columns apart.
        shared_row<2>(lines, index, block.first, neighbours_ ? x / 2 : x, neighbours_ ? (count + 1) / 2 : count,
                      sums.values[0]);
      } else if (block.lanes == Lanes::one_pixel) {
        add(std::integral_constant<Lanes, Lanes::one_pixel>{});
      } else {
        add(std::integral_constant<Lanes, Lanes::two_pixels>{});
      }
      uint8_t* target = out + x * channels_ + block.first;
      with_form(requantizer_.form(), [&](auto form) {
        if (block.lanes == Lanes::one_pixel) {
          requantize<form.value>(index, sums, count, target);
        } else {
          requantize_pairs<form.value>(index, sums, count, target);
        }
      });
    }
  }

  // One column of 3 x 3 taps: the upper two rows interleaved, and the lowest one.
  struct Column {
    __m256i lower, upper, lowest;
  };
  struct Pairs {
    __m256i lower, upper;
  };

  // The sums of `count` vectors from x, 3 x 3 taps, two at a time.
  template <int stride>
  __attribute__((noinline)) void shared_row(const Lines& lines, int64_t index, int64_t first, int64_t x, int64_t count,
                                            int32_t* to) const {
    const int16_t* weights = shared_weights_.data() + index * kShared * 32;
    const int32_t* bias = bias_.data() + 16 * index;
    const uint8_t* const zeros = zero_pixel_.data();
    const uint8_t *highest = lines.rows[0] + first, *middle = lines.rows[1] + first, *lowest = lines.rows[2] + first;
    const auto column = [&](int64_t number) __attribute__((always_inline)) {
      const int64_t at = number - lines.before;
      const uint8_t *one = zeros, *two = zeros, *three = zeros;
      if (__builtin_expect(static_cast<uint64_t>(at) < static_cast<uint64_t>(lines.width), 1)) {
        one = highest + at * lines.step, two = middle + at * lines.step, three = lowest + at * lines.step;
      }
      const __m256i upper = _mm256_cvtepu8_epi16(load16(one)), lower = _mm256_cvtepu8_epi16(load16(two));
      return Column{_mm256_unpacklo_epi16(upper, lower), _mm256_unpackhi_epi16(upper, lower),
                    _mm256_cvtepu8_epi16(load16(three))};
    };
    const auto beside = [](const Column& left, const Column& right) __attribute__((always_inline)) {
      return Pairs{_mm256_unpacklo_epi16(left.lowest, right.lowest), _mm256_unpackhi_epi16(left.lowest, right.lowest)};
    };
    Column left = column(x * stride), next = column(x * stride + 1);
    Pairs lowest_pairs = beside(left, next);
    for (const int64_t end = x + count; x < end; x += 2, to += 32) {
      __m256i one[2] = {load32(bias), load32(bias + 8)}, two[2] = {one[0], one[1]};
      const auto add = [&](__m256i(&sums)[2], __m256i lower, __m256i upper, int number) __attribute__((always_inline)) {
        const int16_t* w = weights + 32 * number;
        sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(lower, load32(w)));
        sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(upper, load32(w + 16)));
        // Sums in another order would wait on the stack.
        asm("" : "+x"(sums[0]), "+x"(sums[1]));
      };
      const int64_t at = x * stride;
      add(one, left.lower, left.upper, 0);
      add(one, next.lower, next.upper, 1);
      add(one, lowest_pairs.lower, lowest_pairs.upper, 3);
      if constexpr (stride == 1) {
        add(two, lowest_pairs.lower, lowest_pairs.upper, 5);
        add(two, next.lower, next.upper, 0);
        left = column(at + 2);
        add(one, left.lower, left.upper, 2);
        add(two, left.lower, left.upper, 1);
        next = column(at + 3);
        lowest_pairs = beside(left, next);
        add(one, lowest_pairs.lower, lowest_pairs.upper, 4);
        add(two, lowest_pairs.lower, lowest_pairs.upper, 6);
        add(two, next.lower, next.upper, 2);
      } else {
        left = column(at + 2);
        add(one, left.lower, left.upper, 2);
        add(two, left.lower, left.upper, 0);
        next = column(at + 3);
        lowest_pairs = beside(left, next);
        add(one, lowest_pairs.lower, lowest_pairs.upper, 4);
        add(two, lowest_pairs.lower, lowest_pairs.upper, 3);
        add(two, next.lower, next.upper, 1);
        left = column(at + 4);
        add(two, left.lower, left.upper, 2);
        next = column(at + 5);
        lowest_pairs = beside(left, next);
        add(two, lowest_pairs.lower, lowest_pairs.upper, 4);
      }
      store32(to, one[0]);
      store32(to + 8, one[1]);
      store32(to + 16, two[0]);
      store32(to + 24, two[1]);
    }
  }

  template <Lanes lanes>
  static inline __m256i load(const uint8_t* first, const uint8_t* second) {
    if constexpr (lanes == Lanes::one_pixel) return _mm256_cvtepu8_epi16(load16(first));
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(load8(first), load8(second)));
  }

  // 8 sums of pairs, as they are added.
  template <Pair pair>
  static inline __m256i pair_sums(__m256i values, const int16_t* weights, __m256i moved) {
    __m256i sums = _mm256_madd_epi16(values, load32(weights));
    if constexpr (pair != Pair::exact) {
      sums = _mm256_max_epi32(_mm256_min_epi32(sums, _mm256_set1_epi32(INT16_MAX)), _mm256_set1_epi32(INT16_MIN));
    }
    if constexpr (pair == Pair::clamped_and_moved) sums = _mm256_add_epi32(sums, _mm256_madd_epi16(values, moved));
    return sums;
  }

  // The sums of `count` output pixels from x, with `fixed` pairs of taps (exact ones follow one another in the table), or any.
  template <Lanes lanes, Pair pair, int fixed>
  __attribute__((noinline)) void add_taps(const uint8_t* const* table, int64_t index, const Block& block, int64_t x,
                                          int64_t count, Sums& result) const {
    constexpr int each = lanes == Lanes::one_pixel ? 1 : 2;  // pixels in a vector
    const int16_t* weights = weights_.data() + index * pairs_ * 32;
    const int32_t* bias = bias_.data() + 16 * index;
    const int64_t pairs = pairs_, first = block.first, step = stride_w_ * taps_h_;
    const int64_t* tap_index = tap_index_.data();
    int32_t* target = result.values[0];
    for (int64_t p = 0; p < count; p += each, target += 16) {
      const uint8_t* const* left = table + (x + p) * step;
      const uint8_t* const* right = table + (x + std::min<int64_t>(p + each, count) - 1) * step;
      __m256i lower = load32(bias), upper = load32(bias + 8);
      const auto multiply = [&](int64_t number, int64_t t0, int64_t t1) __attribute__((always_inline)) {
        const int16_t* w = weights + 32 * number;
        const __m256i a = load<lanes>(left[t0] + first, right[t0] + first);
        const __m256i b = load<lanes>(left[t1] + first, right[t1] + first);
        const __m256i moved = _mm256_set1_epi32(moved_.data()[number]);
        lower = _mm256_add_epi32(lower, pair_sums<pair>(_mm256_unpacklo_epi16(a, b), w, moved));
        upper = _mm256_add_epi32(upper, pair_sums<pair>(_mm256_unpackhi_epi16(a, b), w + 16, moved));
      };
      if constexpr (fixed > 0 && pair == Pair::exact) {
        unroll<fixed>([&](int number) __attribute__((always_inline)) { multiply(number, 2 * number, 2 * number + 1); });
      } else {
        const auto any = [&](int64_t number) __attribute__((always_inline)) {
          multiply(number, tap_index[2 * number], tap_index[2 * number + 1]);
        };
        if constexpr (fixed > 0) {
          unroll<fixed>(any);
        } else {
          for (int64_t number = 0; number < pairs; ++number) any(number);
        }
      }
      store32(target, lower);
      store32(target + 8, upper);
    }
  }

  // Vectors of one pixel each.
  template <Form form>
  __attribute__((noinline)) void requantize(int64_t index, const Sums& sums, int64_t count, uint8_t* out) const {
    requantize_rows<form>(requantizer_, requantizer_.group(index), requantizer_.store(), sums.values[0],
                          static_cast<int>(count), out, channels_, 16);
  }

  // Vectors of two pixels each, `count` pixels in all.
  template <Form form>
  __attribute__((noinline)) void requantize_pairs(int64_t index, const Sums& sums, int64_t count, uint8_t* out) const {
    const Group& group = requantizer_.group(index);
    const Store store = requantizer_.store();
    const auto size = static_cast<size_t>(std::min<int64_t>(channels_, 8));
    if (channels_ == 8 && count % 2 == 0) {
      requantize_rows<form>(requantizer_, group, store, sums.values[0], static_cast<int>(count / 2), out, 16, 16);
      return;
    }
    alignas(16) uint8_t bytes[16 * kChunk];
    requantize_rows<form>(requantizer_, group, store, sums.values[0], static_cast<int>((count + 1) / 2), bytes, 16, 16);
    if (size == 8) {
      for (int64_t p = 0; p < count; ++p) store8(out + p * channels_, load8(bytes + 8 * p));
    } else {
      for (int64_t p = 0; p < count; ++p) std::memcpy(out + p * channels_, bytes + 8 * p, size);
    }
  }

  int64_t channels_, taps_h_, stride_h_, stride_w_, dilation_h_, width_, out_width_, pad_left_;
  int64_t columns_;  // of the padded input that some output reads
  int64_t pairs_;    // of taps
  bool dense_;       // taps that follow one another read adjacent columns
  bool shares_;      // 3 x 3 taps whose neighbours share columns
  bool neighbours_;  // two pixels of 8 channels are a vector
  Pair pair_;
  int64_t blocks_;
  AlignedArray<int64_t> tap_index_;       // in the table, from the first column of the output pixel
  AlignedArray<int32_t> moved_;           // per pair twice the zero point of the weights, 16 bits each, 0 for no tap
  AlignedArray<int16_t> weights_;         // [block][pair][accumulator][tap of the pair]
  AlignedArray<int16_t> shared_weights_;  // [block][pair of share()][accumulator][place]
  AlignedArray<int32_t> bias_;            // [block][accumulator], moved by the requantizer's offset
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
