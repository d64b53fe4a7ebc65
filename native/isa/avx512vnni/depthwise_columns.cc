#include "isa/avx512vnni/depthwise_columns.h"

#include <algorithm>

#include "isa/avx512vnni/interleave.h"
#include "isa/avx512vnni/intrinsics.h"
#include "isa/avx512vnni/requantize.h"
#include "isa/tools.h"

namespace bittrue::avx512vnni {
namespace {

#define BITTRUE_LAMBDA __attribute__((always_inline))

// Channels are taken 64 at a time; of 32 or 16 that are left, two or four times as many output rows are taken together. Columns
// of three taps are interleaved in registers, where one serves all pixels that it lies under: with stride 1 those of two output
// rows, for which four input rows make it up. Unpacking leaves in dword 4 * l + j of register v byte 16 * l + 4 * v + j, and
// pack() undoes that.
constexpr int64_t kChannelGroup = 64;
constexpr int kTaps = 3;    // in each direction, at most
constexpr int kPixels = 2;  // computed together: constants, more than registers hold, are loaded once for all of them

constexpr int rows_together(int stride) { return stride == 1 ? 2 : 1; }

// Constants of 64 bytes of the output, in the order in which they are used; of the second row with stride 1 alone.
struct alignas(64) GroupConstants {
  int32_t bias[4][16];
  int8_t weights[4][kTaps][2][64];
};

// Constants that several instructions take are loaded once: the compiler would give each a load of its own.
template <bool kWanted>
inline __m512i kept(__m512i constant) {
  if constexpr (kWanted) asm("" : "+v"(constant));
  return constant;
}
template <bool kWanted>
inline Line kept(Line line) {
  if constexpr (kWanted) asm("" : "+v"(line.slope_high), "+v"(line.offset));
  return line;
}

struct Column {
  __m512i at[4];
};

// One group of channels of kParts times as many output rows as are taken together.
template <int kStride, int kParts>
struct GroupRun {
  static constexpr int kRows = rows_together(kStride), kInputs = kTaps + kRows - 1;
  const uint8_t* rows[kParts][kInputs];
  uint8_t* out[kParts][kRows];
  int64_t channels, width, out_width, pad_left;
  uint8_t zero_point;
  const GroupConstants* constants;
  const Requantizer* requantizer;
  const LineGroup* lines;

  [[gnu::always_inline]] __m512i load(int input, int64_t at) const {
    const auto half = [&](int part) { return reinterpret_cast<const __m256i*>(rows[part][input] + at); };
    const auto quarter = [&](int part) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(half(part))); };
    if constexpr (kParts == 1) {
      return kept<true>(_mm512_loadu_si512(rows[0][input] + at));
    } else if constexpr (kParts == 2) {
      return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(half(0))), _mm256_loadu_si256(half(1)), 1);
    } else {
      const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(quarter(0)), quarter(1), 1);
      const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(quarter(2)), quarter(3), 1);
      return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
  }

  [[gnu::always_inline]] void store(int row, int64_t at, __m512i bytes) const {
    const auto half = [&](int part) { return reinterpret_cast<__m256i*>(out[part][row] + at); };
    const auto quarter = [&](int part) { return reinterpret_cast<__m128i*>(half(part)); };
    if constexpr (kParts == 1) {
      _mm512_storeu_si512(out[0][row] + at, bytes);
    } else if constexpr (kParts == 2) {
      _mm256_storeu_si256(half(0), _mm512_castsi512_si256(bytes));
      _mm256_storeu_si256(half(1), _mm512_extracti64x4_epi64(bytes, 1));
    } else {
      _mm_storeu_si128(quarter(0), _mm512_castsi512_si128(bytes));
      _mm_storeu_si128(quarter(1), _mm512_extracti32x4_epi32(bytes, 1));
      _mm_storeu_si128(quarter(2), _mm512_extracti32x4_epi32(bytes, 2));
      _mm_storeu_si128(quarter(3), _mm512_extracti32x4_epi32(bytes, 3));
    }
  }

  // Where there are three input rows, the fourth byte of every dword has no tap: its weights are zero.
  [[gnu::always_inline]] Column column(int64_t x) const {
    const int64_t at = x * channels;
    const __m512i a = load(0, at), b = load(1, at), c = load(2, at), d = kInputs > 3 ? load(kInputs - 1, at) : c;
    const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
    const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
    return {{_mm512_unpacklo_epi16(ab_low, cd_low), _mm512_unpackhi_epi16(ab_low, cd_low),
             _mm512_unpacklo_epi16(ab_high, cd_high), _mm512_unpackhi_epi16(ab_high, cd_high)}};
  }

  [[gnu::always_inline]] Column column_or_padding(int64_t x) const {
    if (x >= 0 && x < width) return column(x);
    const __m512i padding = _mm512_set1_epi8(static_cast<char>(zero_point));
    return {{padding, padding, padding, padding}};
  }
};

// All loops over registers are unrolled by templates: in arrays that are indexed otherwise, columns would lie on the stack.
template <Form form, bool plain, int kCount, int kStride, int kParts, size_t kColumns>
[[gnu::always_inline]] inline void finish_pixels(const GroupRun<kStride, kParts>& run,
                                                 const Column (&columns)[kColumns], const Store& stored,
                                                 int64_t pixel) {
  constexpr int kRows = rows_together(kStride);
  constexpr bool kKeeps = kParts < 4;  // registers run out otherwise
  const GroupConstants& constants = *run.constants;
  __m512i words[kCount][kRows][2];  // of 16 bits: packed early, for want of registers
  unroll<2>([&](int pair) BITTRUE_LAMBDA {
    __m512i sums[2][kCount][kRows];
    unroll<2>([&](int i) BITTRUE_LAMBDA {
      const int v = 2 * pair + i;
      const __m512i bias = kept<kKeeps>(_mm512_load_si512(constants.bias[v]));
      unroll<kCount * kRows>([&](int k) BITTRUE_LAMBDA { sums[i][k / kRows][k % kRows] = bias; });
      unroll<kTaps * kRows>([&](int k) BITTRUE_LAMBDA {
        const int tap = k / kRows, row = k % kRows;
        const __m512i weights = kept<kKeeps>(_mm512_load_si512(constants.weights[v][tap][row]));
        unroll<kCount>([&](int p) BITTRUE_LAMBDA {
          sums[i][p][row] = _mm512_dpbusd_epi32(sums[i][p][row], columns[p * kStride + tap].at[v], weights);
        });
      });
      const Line line = kept<kKeeps>(load<form>(run.lines[v]));
      unroll<kCount * kRows>([&](int k) BITTRUE_LAMBDA {
        sums[i][k / kRows][k % kRows] = rescale<form>(sums[i][k / kRows][k % kRows], line);
      });
    });
    unroll<kCount * kRows>([&](int k) BITTRUE_LAMBDA {
      const int p = k / kRows, row = k % kRows;
      words[p][row][pair] = _mm512_packs_epi32(sums[0][p][row], sums[1][p][row]);
    });
  });
  // A second row that is none has the first one's place, and comes before it.
  unroll<kCount * kRows>([&](int k) BITTRUE_LAMBDA {
    const int p = k / kRows, row = kRows - 1 - k % kRows;
    run.store(row, (pixel + p) * run.channels, pack_words<plain>(words[p][row][0], words[p][row][1], stored));
  });
}

template <Form form, bool plain, int kStride, int kParts>
void run_group(const GroupRun<kStride, kParts>& given) {
  constexpr int kKept = kTaps - kStride, kNew = kStride * kPixels;
  const GroupRun<kStride, kParts> run = given;  // which stores of bytes cannot change
  const Store stored = run.requantizer->store();
  // Pixels [begin, end) lie within the image, but for the columns that those before them share.
  const int64_t begin = std::min(run.out_width, (run.pad_left + kStride - 1) / kStride);
  const int64_t end = std::max(begin, std::min(run.out_width, (run.width + run.pad_left - kTaps) / kStride + 1));
  int64_t pixel = 0, x = -run.pad_left;
  Column columns[kKept + kNew];
  unroll<kKept>([&](int i) BITTRUE_LAMBDA { columns[i] = run.column_or_padding(x++); });
  while (pixel < run.out_width) {
    for (; pixel >= begin && pixel + kPixels <= end; pixel += kPixels) {
      unroll<kNew>([&](int i) BITTRUE_LAMBDA { columns[kKept + i] = run.column(x++); });
      finish_pixels<form, plain, kPixels>(run, columns, stored, pixel);
      unroll<kKept>([&](int i) BITTRUE_LAMBDA { columns[i] = columns[i + kNew]; });
    }
    const int64_t left = run.out_width - pixel;
    if (left >= kPixels) {
      unroll<kNew>([&](int i) BITTRUE_LAMBDA { columns[kKept + i] = run.column_or_padding(x++); });
      finish_pixels<form, plain, kPixels>(run, columns, stored, pixel);
      unroll<kKept>([&](int i) BITTRUE_LAMBDA { columns[i] = columns[i + kNew]; });
    } else if (left > 0) {
      unroll<kStride>([&](int i) BITTRUE_LAMBDA { columns[kKept + i] = run.column_or_padding(x++); });
      finish_pixels<form, plain, 1>(run, columns, stored, pixel);
    }
    pixel += kPixels;
  }
}

template <int kStride, int kParts>
using GroupFunction = void (*)(const GroupRun<kStride, kParts>&);

template <int kStride, int kParts>
GroupFunction<kStride, kParts> group_function(const Requantizer& requantizer) {
  const bool plain = requantizer.plain();
  switch (requantizer.form()) {
    case Form::product: return run_group<Form::product, false, kStride, kParts>;
    case Form::short_line:
      return plain ? run_group<Form::short_line, true, kStride, kParts>
                   : run_group<Form::short_line, false, kStride, kParts>;
    case Form::short_away: return run_group<Form::short_away, false, kStride, kParts>;
    case Form::line:
      return plain ? run_group<Form::line, true, kStride, kParts> : run_group<Form::line, false, kStride, kParts>;
    case Form::line_away: return run_group<Form::line_away, false, kStride, kParts>;
    case Form::line_by_sign: return run_group<Form::line_by_sign, false, kStride, kParts>;
    default: return nullptr;
  }
}

template <int kStride>
class ColumnsDepthwise final : public Depthwise {
 public:
  ColumnsDepthwise(const DepthwiseSpec& spec, int64_t channels);

  bool fast() const { return function_1_ != nullptr; }
  int64_t scratch() const override { return 0; }
  int64_t preferred_rows() const override { return whole_ % kChannelGroup == 0 ? kRows : 2 * kRows; }
  void run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const override;

 private:
  static constexpr int kRows = rows_together(kStride);

  template <int kParts>
  void run_rows(const uint8_t* const* rows, int64_t count, uint8_t* const* out, int64_t channel, int64_t group,
                GroupFunction<kStride, kParts> function) const;

  // How many times the rows that are taken together make up the 64 bytes of a group that begins at a channel.
  int64_t parts(int64_t channel) const {
    const int64_t left = whole_ - channel;
    return left >= 64 ? 1 : left >= 32 ? 2 : 4;
  }

  int64_t channels_, whole_, taps_h_, stride_h_, dilation_h_, width_, out_width_, pad_left_;
  uint8_t zero_point_;
  Buffer<GroupConstants> constants_;
  std::unique_ptr<Requantizer> requantizer_;
  GroupFunction<kStride, 1> function_1_;
  GroupFunction<kStride, 2> function_2_;
  GroupFunction<kStride, 4> function_4_;
};

template <int kStride>
ColumnsDepthwise<kStride>::ColumnsDepthwise(const DepthwiseSpec& spec, int64_t channels)
    : channels_(spec.channels),
      whole_(channels),
      taps_h_(spec.taps_h),
      stride_h_(spec.stride_h),
      dilation_h_(spec.dilation_h),
      width_(spec.width),
      out_width_(spec.out_width),
      pad_left_(spec.pad_left),
      zero_point_(spec.zero_point) {
  int64_t groups = 0;
  for (int64_t channel = 0; channel < whole_; channel += kChannelGroup / parts(channel)) ++groups;
  constants_.allocate(groups);
  Buffer<int64_t> columns, least, greatest;
  for (Buffer<int64_t>* buffer : {&columns, &least, &greatest}) buffer->allocate(groups * kChannelGroup);
  for (int64_t group = 0, begin = 0; group < groups; begin += kChannelGroup / parts(begin), ++group) {
    GroupConstants& constants = constants_[group];
    for (int64_t k = 0; k < kChannelGroup; ++k) {
      const int64_t v = k / 16, lane = k % 16, i = group * kChannelGroup + k;
      const int64_t channel = begin + (lane / 4 * 16 + v * 4 + lane % 4) % (kChannelGroup / parts(begin));
      columns[i] = channel;
      least[i] = greatest[i] = constants.bias[v][lane] = spec.bias[channel];
      for (int64_t tap = 0; tap < taps_h_ * kTaps; ++tap) {
        const int16_t weight = spec.weights[tap * channels_ + channel];
        for (int64_t row = 0; row < kRows; ++row) {
          constants.weights[v][tap % kTaps][row][lane * 4 + tap / kTaps + row] = static_cast<int8_t>(weight);
        }
        (weight < 0 ? least : greatest)[i] += 255 * weight;
      }
    }
  }
  requantizer_.reset(
      new Requantizer(spec.requantize, columns.data(), groups * kChannelGroup, least.data(), greatest.data()));
  function_1_ = group_function<kStride, 1>(*requantizer_);
  function_2_ = group_function<kStride, 2>(*requantizer_);
  function_4_ = group_function<kStride, 4>(*requantizer_);
}

template <int kStride>
template <int kParts>
void ColumnsDepthwise<kStride>::run_rows(const uint8_t* const* rows, int64_t count, uint8_t* const* out,
                                         int64_t channel, int64_t group,
                                         GroupFunction<kStride, kParts> function) const {
  GroupRun<kStride, kParts> run;
  run.channels = channels_;
  run.width = width_;
  run.out_width = out_width_;
  run.pad_left = pad_left_;
  run.zero_point = zero_point_;
  run.constants = constants_.data() + group;
  run.requantizer = requantizer_.get();
  run.lines = requantizer_->lines() + group * 4;
  for (int64_t first = 0; first < count; first += kParts * kRows) {
    for (int64_t part = 0; part < kParts; ++part) {
      // Rows past the end repeat those before it. A single row has no second one: its input is not looked at.
      const int64_t y = std::max<int64_t>(0, std::min(first + part * kRows, count - kRows));
      for (int64_t i = 0; i < run.kInputs; ++i) {
        const int64_t used = taps_h_ + std::min<int64_t>(kRows, count) - 1;
        run.rows[part][i] = rows[y * stride_h_ + (i < used ? i * dilation_h_ : 0)] + channel;
      }
      for (int64_t row = 0; row < kRows; ++row) run.out[part][row] = out[std::min(y + row, count - 1)] + channel;
    }
    function(run);
  }
}

template <int kStride>
void ColumnsDepthwise<kStride>::run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t*) const {
  const int64_t full = whole_ / kChannelGroup;
  // Few rows at a time, so that what full groups read is still near when the others come.
  constexpr int64_t kBlock = 4 * kRows;
  for (int64_t first = 0; first < count; first += kBlock, rows += kBlock * stride_h_, out += kBlock) {
    const int64_t block = std::min(kBlock, count - first);
    for (int64_t y = 0; y < block; y += kRows) {
      // The last row of an odd count is done again with the one before it.
      const int64_t begin = std::max<int64_t>(0, std::min(y, block - kRows));
      for (int64_t group = 0; group < full; ++group) {
        run_rows<1>(rows + begin * stride_h_, std::min<int64_t>(kRows, block), out + begin, group * kChannelGroup,
                    group, function_1_);
      }
    }
    int64_t group = full;
    for (int64_t at = full * kChannelGroup; at < whole_; at += kChannelGroup / parts(at), ++group) {
      if (parts(at) == 2) run_rows<2>(rows, block, out, at, group, function_2_);
      if (parts(at) == 4) run_rows<4>(rows, block, out, at, group, function_4_);
    }
  }
}

template <int kStride>
std::unique_ptr<Depthwise> make(const DepthwiseSpec& spec, int64_t channels) {
  std::unique_ptr<ColumnsDepthwise<kStride>> core(new ColumnsDepthwise<kStride>(spec, channels));
  if (!core->fast()) return nullptr;
  return core;
}

}  // namespace

int64_t channels_by_columns(const DepthwiseSpec& spec) {
  if (spec.taps_w != kTaps || spec.dilation_w != 1 || spec.taps_h > kTaps) return 0;
  // Where two output rows share four input rows, strips do 16 channels alone better, and those that are left by sixteen
  // unless most others are here.
  const bool shared = spec.stride_w == 1 && spec.stride_h == 1 && spec.dilation_h == 1;
  int64_t channels = 0;
  if (spec.stride_w == 2) {
    channels = spec.channels / 16 * 16;
  } else if (shared && spec.channels % 16 == 0) {
    channels = spec.channels > 16 ? spec.channels : 0;
  } else if (shared && spec.channels >= 2 * kChannelGroup) {
    channels = spec.channels / kChannelGroup * kChannelGroup;
  }
  for (int64_t tap = 0; tap < spec.taps_h * spec.taps_w; ++tap) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      const int16_t weight = spec.weights[tap * spec.channels + channel];
      if (weight < -128 || weight > 127) return 0;
    }
  }
  return channels;
}

std::unique_ptr<Depthwise> make_columns_depthwise(const DepthwiseSpec& spec, int64_t channels) {
  return spec.stride_w == 1 ? make<1>(spec, channels) : make<2>(spec, channels);
}

}  // namespace bittrue::avx512vnni
