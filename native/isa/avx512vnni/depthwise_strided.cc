#include "isa/avx512vnni/depthwise_strided.h"

#include <algorithm>

#include "isa/avx512vnni/interleave.h"
#include "isa/avx512vnni/intrinsics.h"
#include "isa/avx512vnni/requantize.h"

namespace bittrue::avx512vnni {
namespace {

// Channels are taken 64 at a time. With stride 2 a column serves one or two horizontal taps of three only, so it is
// interleaved in registers: of the three columns under a pixel the last one is the first one under the next pixel.
// Unpacking leaves in dword 4 * l + j of register v channel 16 * l + 4 * v + j, and pack() undoes that.
constexpr int64_t kChannelGroup = 64;
constexpr int kTaps = 3;

// Constants of 64 channels, in the order in which they are used.
struct alignas(64) GroupConstants {
  int32_t bias[4][16];
  int8_t weights[kTaps][4][64];
};

struct Column {
  __m512i at[4];
};

inline Column interleaved(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
  return {{_mm512_unpacklo_epi16(ab_low, cd_low), _mm512_unpackhi_epi16(ab_low, cd_low),
           _mm512_unpacklo_epi16(ab_high, cd_high), _mm512_unpackhi_epi16(ab_high, cd_high)}};
}

// One group of channels of one output row.
struct GroupRun {
  const uint8_t* rows[4];
  int64_t channels, width, out_width, pad_left;
  uint8_t zero_point;
  const GroupConstants* constants;
  const Requantizer* requantizer;
  int64_t group;
  uint8_t* out;
};

// A fourth row that has no taps has zero weights.
template <bool fourth>
[[gnu::always_inline]] inline Column load_column(const GroupRun& run, int64_t column) {
  const int64_t at = column * run.channels;
  const __m512i third = _mm512_loadu_si512(run.rows[2] + at);
  return interleaved(_mm512_loadu_si512(run.rows[0] + at), _mm512_loadu_si512(run.rows[1] + at), third,
                     fourth ? _mm512_loadu_si512(run.rows[3] + at) : third);
}

template <bool fourth>
[[gnu::always_inline]] inline Column load_or_pad(const GroupRun& run, int64_t column) {
  if (column >= 0 && column < run.width) return load_column<fourth>(run, column);
  const __m512i padding = _mm512_set1_epi8(static_cast<char>(run.zero_point));
  return {{padding, padding, padding, padding}};
}

template <Form form, bool plain>
[[gnu::always_inline]] inline void finish_pixel(const GroupRun& run, const Column& first, const Column& second,
                                                const Column& third, const Store& stored, uint8_t* out) {
  const GroupConstants& constants = *run.constants;
  const LineGroup* const lines = run.requantizer->lines() + run.group * 4;
  __m512i words[4];
  for (int v = 0; v < 4; ++v) {
    __m512i acc = _mm512_load_si512(constants.bias[v]);
    acc = _mm512_dpbusd_epi32(acc, first.at[v], _mm512_load_si512(constants.weights[0][v]));
    acc = _mm512_dpbusd_epi32(acc, second.at[v], _mm512_load_si512(constants.weights[1][v]));
    acc = _mm512_dpbusd_epi32(acc, third.at[v], _mm512_load_si512(constants.weights[2][v]));
    words[v] = rescale<form>(acc, load<form>(lines[v]));
  }
  _mm512_storeu_si512(out, pack<plain>(words[0], words[1], words[2], words[3], stored));
}

template <Form form, bool plain, bool fourth>
void run_group(const GroupRun& given) {
  const GroupRun run = given;  // which stores of bytes cannot change
  const Store stored = run.requantizer->store();
  // Pixels [begin, end) lie within the image, but for the first column under the first of them.
  const int64_t begin = std::min(run.out_width, run.pad_left / 2);
  const int64_t end = std::max(begin, std::min(run.out_width, (run.width + run.pad_left - 1) / 2));
  Column first = load_or_pad<fourth>(run, -run.pad_left);
  uint8_t* out = run.out;
  int64_t column = -run.pad_left;
  int64_t pixel = 0;
  const auto padded = [&](int64_t last) {
    for (; pixel < last; ++pixel, column += 2, out += run.channels) {
      const Column second = load_or_pad<fourth>(run, column + 1), third = load_or_pad<fourth>(run, column + 2);
      finish_pixel<form, plain>(run, first, second, third, stored, out);
      first = third;
    }
  };
  padded(begin);
  for (; pixel < end; ++pixel, column += 2, out += run.channels) {
    const Column second = load_column<fourth>(run, column + 1), third = load_column<fourth>(run, column + 2);
    finish_pixel<form, plain>(run, first, second, third, stored, out);
    first = third;
  }
  padded(run.out_width);
}

using GroupFunction = void (*)(const GroupRun&);

GroupFunction group_function(const Requantizer& requantizer, bool fourth) {
  const bool plain = requantizer.plain();
  switch (requantizer.form()) {
    case Form::product: return fourth ? run_group<Form::product, false, true> : run_group<Form::product, false, false>;
    case Form::line:
      if (plain) return fourth ? run_group<Form::line, true, true> : run_group<Form::line, true, false>;
      return fourth ? run_group<Form::line, false, true> : run_group<Form::line, false, false>;
    case Form::line_away:
      return fourth ? run_group<Form::line_away, false, true> : run_group<Form::line_away, false, false>;
    case Form::line_by_sign:
      return fourth ? run_group<Form::line_by_sign, false, true> : run_group<Form::line_by_sign, false, false>;
    default: return nullptr;
  }
}

class StridedDepthwise final : public Depthwise {
 public:
  StridedDepthwise(const DepthwiseSpec& spec, int64_t channels);

  bool fast() const { return function_ != nullptr; }
  int64_t scratch() const override { return 0; }
  int64_t preferred_rows() const override { return 1; }
  void run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const override;

 private:
  int64_t channels_, groups_, taps_h_, stride_h_, dilation_h_, width_, out_width_, pad_left_;
  uint8_t zero_point_;
  Buffer<GroupConstants> constants_;
  std::unique_ptr<Requantizer> requantizer_;
  GroupFunction function_;
};

StridedDepthwise::StridedDepthwise(const DepthwiseSpec& spec, int64_t channels)
    : channels_(spec.channels),
      groups_(channels / kChannelGroup),
      taps_h_(spec.taps_h),
      stride_h_(spec.stride_h),
      dilation_h_(spec.dilation_h),
      width_(spec.width),
      out_width_(spec.out_width),
      pad_left_(spec.pad_left),
      zero_point_(spec.zero_point) {
  constants_.allocate(groups_);
  Buffer<int64_t> columns, least, greatest;
  for (Buffer<int64_t>* buffer : {&columns, &least, &greatest}) buffer->allocate(channels);
  for (int64_t i = 0; i < channels; ++i) {
    const int64_t group = i / kChannelGroup, v = i % kChannelGroup / 16, lane = i % 16;
    const int64_t channel = group * kChannelGroup + lane / 4 * 16 + v * 4 + lane % 4;
    GroupConstants& constants = constants_[group];
    columns[i] = channel;
    least[i] = greatest[i] = constants.bias[v][lane] = spec.bias[channel];
    for (int64_t tap = 0; tap < taps_h_ * kTaps; ++tap) {
      const int16_t weight = spec.weights[tap * channels_ + channel];
      constants.weights[tap % kTaps][v][lane * 4 + tap / kTaps] = static_cast<int8_t>(weight);
      (weight < 0 ? least : greatest)[i] += 255 * weight;
    }
  }
  requantizer_.reset(new Requantizer(spec.requantize, columns.data(), channels, least.data(), greatest.data()));
  function_ = group_function(*requantizer_, taps_h_ == 4);
}

void StridedDepthwise::run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t*) const {
  GroupRun run;
  run.channels = channels_;
  run.width = width_;
  run.out_width = out_width_;
  run.pad_left = pad_left_;
  run.zero_point = zero_point_;
  run.requantizer = requantizer_.get();
  for (int64_t y = 0; y < count; ++y) {
    for (int64_t group = 0; group < groups_; ++group) {
      for (int64_t i = 0; i < 4; ++i) {
        run.rows[i] = rows[y * stride_h_ + (i < taps_h_ ? i * dilation_h_ : 0)] + group * kChannelGroup;
      }
      run.constants = constants_.data() + group;
      run.group = group;
      run.out = out[y] + group * kChannelGroup;
      function_(run);
    }
  }
}

}  // namespace

std::unique_ptr<Depthwise> make_strided_depthwise(const DepthwiseSpec& spec, int64_t channels) {
  if (spec.stride_w != 2 || spec.taps_w != kTaps || spec.dilation_w != 1 || spec.taps_h > 4) return nullptr;
  for (int64_t tap = 0; tap < spec.taps_h * spec.taps_w; ++tap) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      const int16_t weight = spec.weights[tap * spec.channels + channel];
      if (weight < -128 || weight > 127) return nullptr;
    }
  }
  std::unique_ptr<StridedDepthwise> core(new StridedDepthwise(spec, channels));
  if (!core->fast()) return nullptr;
  return core;
}

}  // namespace bittrue::avx512vnni
