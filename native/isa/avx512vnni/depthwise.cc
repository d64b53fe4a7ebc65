// Depthwise convolution with VPDPBUSD.
//
// Four vertical taps of one channel are brought into one dword by interleaving the bytes of four input rows; one
// VPDPBUSD then multiplies and adds 4 taps of 16 channels. Two facts make this cheap:
//  * one interleaved column serves all horizontal taps, and
//  * with three vertical taps and stride 1 it serves two output rows, with the weights [w0 w1 w2 0] and [0 w0 w1 w2].
// In general `sets` = ceil(taps_h / 4) sets of four rows serve `shared` output rows, each with its own copy of the
// weights. One-row filters (1 x k, k >= 5) take four horizontal taps into a dword instead.
//
// The interleaved columns ("dwords" below) lie in scratch memory, in channel order: dwords[column][channel], columns
// outside of the image included. Outputs are computed in units of 16 neighbouring bytes of the output row. If the
// channels do not fill units well, `group` neighbouring pixels are treated as one pixel of group * channels channels,
// which is the same convolution as long as output pixels step by one column; for stride 2 the even and the odd columns
// are stored apart ("phases"), which makes it so.

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/depthwise_columns.h"
#include "isa/avx512vnni/interleave.h"
#include "isa/avx512vnni/intrinsics.h"
#include "isa/avx512vnni/requantize.h"
#include "isa/cores.h"

namespace bittrue::avx512vnni {
namespace {

constexpr int64_t kUnit = 16;      // output bytes per unit: dwords in a register
constexpr int kPasses = 3;         // s8 addends that any weight within [-255, 255] splits into
constexpr int64_t kTile = 4;       // pixels of one unit computed together: packing fills one register
constexpr int64_t kSlack = 64;     // dwords behind every region of scratch that stores may overrun
constexpr int64_t kBudget = 5120;  // dwords of scratch that stay in a first-level cache beside the rest

int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

int64_t greatest_common_divisor(int64_t a, int64_t b) { return b == 0 ? a : greatest_common_divisor(b, a % b); }

// Bytes of the unit that begins at `begin` which lie before `end`.
inline __mmask16 bytes_within(int64_t begin, int64_t end) {
  const int64_t count = end - begin;
  return count >= kUnit ? __mmask16{0xFFFF} : count <= 0 ? __mmask16{0} : static_cast<__mmask16>((1u << count) - 1);
}

// Neighbouring units with equally many steps: all pixels of one strip, in one or two output rows.
struct UnitsRun {
  const uint32_t* dwords;  // of the first pixel and unit
  int64_t pixel_step;      // dwords from one pixel to the next
  const int64_t* offsets;  // [steps]: where a step's dwords begin
  int64_t steps;
  const int8_t* weights;  // [units][rows, more than these perhaps][steps][64]
  int64_t weights_step;   // bytes from one unit to the next
  const int32_t* bias;    // [units][16]
  const Requantizer* requantizer;
  int64_t first, units;  // units of the layer; groups of the requantizer
  uint8_t* out[2];
  int64_t out_step;  // bytes from one pixel to the next
  int64_t pixels;
  int64_t pixel_bytes, rest_bytes;  // of the layer's whole pixels, and of one pixel more
};

// Rescaling of one unit.
template <Form form, bool fast = is_fast(form)>
class Rescale {
 public:
  Rescale(const Requantizer& requantizer, int64_t unit) : line_(load<form>(requantizer.lines()[unit])) {}
  __m512i operator()(__m512i acc) const { return rescale<form>(acc, line_); }

 private:
  Line line_;
};

template <Form form>
class Rescale<form, false> {
 public:
  Rescale(const Requantizer& requantizer, int64_t unit) : requantizer_(requantizer), unit_(unit) {}
  __m512i operator()(__m512i acc) const { return requantizer_.rescale_any(acc, unit_); }

 private:
  const Requantizer& requantizer_;
  int64_t unit_;
};

// Lanes of the packed register are [pixel 0, 1, 2, 3] of four channels each; afterwards lane p is pixel p.
[[gnu::always_inline]] inline __m512i pixels_apart(__m512i packed) {
  return _mm512_permutexvar_epi32(_mm512_load_si512(kPrepare), packed);
}

template <int kPixels>
[[gnu::always_inline]] inline void store(__m512i packed, uint8_t* out, int64_t step, __mmask16 mask) {
  const __m512i pixels = pixels_apart(packed);
  if (mask == 0xFFFF) {
    if (kPixels == 4 && step == kUnit) {
      _mm512_storeu_si512(out, pixels);
      return;
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_castsi512_si128(pixels));
    if (kPixels > 1) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + step), _mm512_extracti32x4_epi32(pixels, 1));
    if (kPixels > 2) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * step), _mm512_extracti32x4_epi32(pixels, 2));
    if (kPixels > 3) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * step), _mm512_extracti32x4_epi32(pixels, 3));
  } else {
    _mm_mask_storeu_epi8(out, mask, _mm512_castsi512_si128(pixels));
    if (kPixels > 1) _mm_mask_storeu_epi8(out + step, mask, _mm512_extracti32x4_epi32(pixels, 1));
    if (kPixels > 2) _mm_mask_storeu_epi8(out + 2 * step, mask, _mm512_extracti32x4_epi32(pixels, 2));
    if (kPixels > 3) _mm_mask_storeu_epi8(out + 3 * step, mask, _mm512_extracti32x4_epi32(pixels, 3));
  }
}

// Where a tile of pixels of one unit reads and writes.
struct Place {
  const uint32_t* dwords;
  const int8_t* weights;
  __m512i bias;
  int64_t out;  // from the first output byte
  __mmask16 mask;
};

template <int kRows, int kPixels>
struct Accumulators {
  __m512i at[kRows][kPixels];
};

// kSteps 0: as many as the run says.
template <int kRows, int kSteps, int kPixels>
[[gnu::always_inline]] inline Accumulators<kRows, kPixels> accumulate(const UnitsRun& run, const Place& place) {
  Accumulators<kRows, kPixels> acc;
  for (int row = 0; row < kRows; ++row) {
    for (int p = 0; p < kPixels; ++p) acc.at[row][p] = place.bias;
  }
  const int64_t steps = kSteps > 0 ? kSteps : run.steps;
  for (int64_t s = 0; s < steps; ++s) {
    const uint32_t* from = place.dwords + run.offsets[s];
    __m512i weights[kRows];
    for (int row = 0; row < kRows; ++row) weights[row] = _mm512_load_si512(place.weights + (row * steps + s) * 64);
    for (int p = 0; p < kPixels; ++p) {
      const __m512i data = _mm512_loadu_si512(from + p * run.pixel_step);
      for (int row = 0; row < kRows; ++row) acc.at[row][p] = _mm512_dpbusd_epi32(acc.at[row][p], data, weights[row]);
    }
  }
  return acc;
}

template <Form form, bool plain, int kRows, int kPixels>
[[gnu::always_inline]] inline void finish(const UnitsRun& run, const Accumulators<kRows, kPixels>& acc, int64_t out,
                                          __mmask16 mask, const Rescale<form>& rescale, const Store& stored) {
  for (int row = 0; row < kRows; ++row) {
    __m512i words[4];
    for (int p = 0; p < 4; ++p) words[p] = p < kPixels ? rescale(acc.at[row][p]) : words[0];
    store<kPixels>(pack<plain>(words[0], words[1], words[2], words[3], stored), run.out[row] + out, run.out_step, mask);
  }
}

template <Form form, bool plain, int kRows, int kSteps, int kPixels>
[[gnu::always_inline]] inline void tile(const UnitsRun& run, const Place& place, const Rescale<form>& rescale,
                                        const Store& stored) {
  finish<form, plain>(run, accumulate<kRows, kSteps, kPixels>(run, place), place.out, place.mask, rescale, stored);
}

template <Form form, bool plain, int kRows, int kSteps>
void run_units(const UnitsRun& run) {
  const Store stored = run.requantizer->store();
  for (int64_t u = 0; u < run.units; ++u) {
    const Rescale<form> rescale(*run.requantizer, run.first + u);
    Place place{run.dwords + u * kUnit, run.weights + u * run.weights_step, _mm512_load_si512(run.bias + u * kUnit),
                u * kUnit, bytes_within((run.first + u) * kUnit, run.pixel_bytes)};
    int64_t left = run.pixels;
    if (kSteps > 0 && left >= kTile) {
      // A tile is one long chain of dependent instructions: the next one is begun before it is finished.
      auto acc = accumulate<kRows, kSteps, kTile>(run, place);
      for (left -= kTile; left >= kTile; left -= kTile) {
        place.dwords += kTile * run.pixel_step;
        const auto next = accumulate<kRows, kSteps, kTile>(run, place);
        finish<form, plain>(run, acc, place.out, place.mask, rescale, stored);
        place.out += kTile * run.out_step;
        acc = next;
      }
      finish<form, plain>(run, acc, place.out, place.mask, rescale, stored);
      place.dwords += kTile * run.pixel_step;
      place.out += kTile * run.out_step;
    }
    for (; left >= kTile; left -= kTile) {
      tile<form, plain, kRows, kSteps, kTile>(run, place, rescale, stored);
      place.dwords += kTile * run.pixel_step;
      place.out += kTile * run.out_step;
    }
    if (left == 3) tile<form, plain, kRows, kSteps, 3>(run, place, rescale, stored);
    if (left == 2) tile<form, plain, kRows, kSteps, 2>(run, place, rescale, stored);
    if (left == 1) tile<form, plain, kRows, kSteps, 1>(run, place, rescale, stored);
    place.dwords += left * run.pixel_step;
    place.out += left * run.out_step;
    place.mask = bytes_within((run.first + u) * kUnit, run.rest_bytes);
    if (place.mask != 0) tile<form, plain, kRows, kSteps, 1>(run, place, rescale, stored);
  }
}

using UnitsFunction = void (*)(const UnitsRun&);

template <Form form, bool plain>
UnitsFunction units_function(int64_t rows, int64_t steps) {
  if constexpr (is_fast(form)) {
    if (steps == 3) return rows == 1 ? run_units<form, plain, 1, 3> : run_units<form, plain, 2, 3>;
  }
  return rows == 1 ? run_units<form, plain, 1, 0> : run_units<form, plain, 2, 0>;
}

UnitsFunction units_function(const Requantizer& requantizer, int64_t rows, int64_t steps) {
  const bool plain = requantizer.plain();
  switch (requantizer.form()) {
    case Form::product: return units_function<Form::product, false>(rows, steps);
    case Form::short_line:
      return (plain ? units_function<Form::short_line, true> : units_function<Form::short_line, false>)(rows, steps);
    case Form::short_away: return units_function<Form::short_away, false>(rows, steps);
    case Form::line: return (plain ? units_function<Form::line, true> : units_function<Form::line, false>)(rows, steps);
    case Form::line_away: return units_function<Form::line_away, false>(rows, steps);
    case Form::line_by_sign: return units_function<Form::line_by_sign, false>(rows, steps);
    default: return units_function<Form::scalar, false>(rows, steps);
  }
}

// How one layer is cut up; see the top of the file.
struct Geometry {
  bool horizontal = false;    // four horizontal taps to a dword
  int64_t sets = 1;           // of four taps in vertical direction
  int64_t taps = 1;           // horizontal steps
  int64_t shared = 1;         // output rows that share interleaved data,
  int64_t shared_offset = 1;  // each so many rows below the one before,
  int64_t shared_taps = 0;    // its taps so many places further down in the sets
  int64_t group = 1, phases = 1;
  int64_t units = 0;
  int64_t chunk = 0;                     // channels interleaved together
  int64_t strip = 0;                     // output columns computed together
  int64_t region = 0;                    // dwords of one phase of one set
  int64_t first_channel = 0, pitch = 0;  // bytes of a column that others do, and of all
  // Of the layer: input columns from one pixel to the next, and under one pixel; the same for rows.
  int64_t channels = 0, stride = 1, span = 1, row_stride = 1, row_dilation = 1, column_dilation = 1, taps_h = 1;
  int64_t width = 0, out_width = 0, pad_left = 0;

  int64_t columns(int64_t pixels) const { return (pixels - 1) * stride + span; }
  // Of the layer, of output byte `i` of a group; -1 behind the last one.
  int64_t channel(int64_t i) const { return i < group * channels ? first_channel + i % channels : -1; }
};

Geometry cut(const DepthwiseSpec& spec, int64_t first_channel) {
  Geometry g;
  g.horizontal = spec.taps_h == 1 && spec.taps_w > 4;
  g.sets = (spec.taps_h + 3) / 4;
  g.taps = g.horizontal ? (spec.taps_w + 3) / 4 : spec.taps_w;
  if (!g.horizontal) {
    // Output rows `offset` apart read input rows offset * stride apart, which must be whole steps of the dilation.
    g.shared_offset = spec.dilation_h / greatest_common_divisor(spec.dilation_h, spec.stride_h);
    g.shared_taps = g.shared_offset * spec.stride_h / spec.dilation_h;
    g.shared = 1 + (4 * g.sets - spec.taps_h) / g.shared_taps;
  }
  if (g.shared == 1) g.shared_offset = 1;
  g.channels = spec.channels - first_channel;
  g.first_channel = first_channel;
  g.pitch = spec.channels;
  g.row_stride = spec.stride_h;
  g.row_dilation = spec.dilation_h;
  g.column_dilation = spec.dilation_w;
  g.taps_h = spec.taps_h;
  g.width = spec.width;
  g.out_width = spec.out_width;
  g.pad_left = spec.pad_left;
  g.stride = spec.stride_w;
  g.span = (spec.taps_w - 1) * spec.dilation_w + 1;

  const int64_t channels = g.channels;
  const bool wasteful = round_up(channels, kUnit) * 16 > channels * 17;
  if (g.pitch != channels) {
    // Pixels do not follow each other.
  } else if (wasteful && spec.stride_w == 1) {
    g.group = kUnit / greatest_common_divisor(channels, kUnit);
  } else if (spec.stride_w == 2 && (channels == 4 || channels == 8)) {
    g.group = kUnit / channels;
    g.phases = 2;
  }
  g.units = (g.group * channels + kUnit - 1) / kUnit;

  const int64_t columns = g.columns(spec.out_width);
  const int64_t step = g.group * kTile;
  // Strips of so many pixels keep `width` channels within the budget.
  const auto strip_for = [&](int64_t width) {
    const int64_t fits = (kBudget / (width * g.sets) - g.span) / g.stride + 1;
    const int64_t largest = std::max(step, fits / step * step);
    const int64_t strips = (spec.out_width + largest - 1) / largest;
    return std::min(spec.out_width, round_up((spec.out_width + strips - 1) / strips, step));
  };
  g.chunk = channels;
  g.strip = strip_for(channels);
  // Narrow strips repeat the columns between them: better fewer channels at a time, if 64 of them lie together.
  if (g.group == 1 && channels > 64 && g.strip < spec.out_width &&
      (channels % 64 == 0 || g.strip * g.stride < 8 * (g.span - 1))) {
    g.chunk = std::max<int64_t>(64, kBudget / (columns * g.sets) / 64 * 64);
    g.strip = strip_for(g.chunk);
  }
  // Groups and units reach beyond the last column.
  g.region = round_up((g.columns(g.strip) + g.phases - 1) / g.phases * g.chunk + g.group * channels, kUnit) + kSlack;
  return g;
}

class DepthwiseCore final : public Depthwise {
 public:
  // `others` does the channels before first_channel.
  DepthwiseCore(const DepthwiseSpec& spec, int64_t first_channel, std::unique_ptr<Depthwise> others);

  int64_t scratch() const override {
    return (g_.sets * g_.phases * g_.region) * 4 + (g_.horizontal ? padded_row_bytes() : 0);
  }
  int64_t preferred_rows() const override { return g_.shared * g_.shared_offset; }
  void run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const override;

 private:
  // Neighbouring units of one chunk with equally many steps.
  struct Span {
    int64_t first, units;
    int64_t steps;
    const int8_t* weights;  // [units][shared][steps][64]
    const int64_t* offsets;
    UnitsFunction functions[2];
  };
  // Columns under one strip: outside of the image, inside, outside.
  struct Columns {
    int64_t first, left, inside, right;
  };

  int64_t padded_row_bytes() const { return round_up((g_.columns(g_.strip) + 3 * g_.column_dilation) * g_.pitch, 64); }
  void place_steps();
  void pack_weights(const DepthwiseSpec& spec);
  void run_rows(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const;
  void gather(const uint8_t* const* taps, const Columns& columns, int64_t channel, int64_t channels,
              uint32_t* to) const;
  // Runs the spans of one chunk, of which `span` is the first; returns the first one after it.
  int64_t run_chunk(const uint32_t* dwords, int64_t channel, int64_t channels, int64_t pixel, int64_t pixels,
                    int64_t span, int64_t count, uint8_t* const* out) const;

  const Geometry g_;
  const std::unique_ptr<Depthwise> others_;
  uint32_t padding_;
  int64_t pass_steps_;
  Buffer<int8_t> weights_;
  Buffer<int32_t> bias_;
  std::unique_ptr<Requantizer> requantizer_;
  Buffer<int64_t> offsets_;  // [2][steps of all passes]: of all chunks but the last, and of the last
  Buffer<Span> spans_;
  int64_t span_count_ = 0;
  alignas(64) int32_t phase_index_[2][16];
};

DepthwiseCore::DepthwiseCore(const DepthwiseSpec& spec, int64_t first_channel, std::unique_ptr<Depthwise> others)
    : g_(cut(spec, first_channel)), others_(std::move(others)) {
  padding_ = spec.zero_point * 0x01010101u;
  pass_steps_ = g_.horizontal ? g_.taps : g_.sets * g_.taps;
  for (int phase = 0; phase < g_.phases && g_.phases > 1; ++phase) {
    prepare_phase(g_.channels / 4, phase, phase_index_[phase]);
  }
  bias_.allocate(g_.units * kUnit);
  Buffer<int64_t> columns, least, greatest;
  for (Buffer<int64_t>* buffer : {&columns, &least, &greatest}) buffer->allocate(g_.units * kUnit);
  for (int64_t i = 0; i < g_.units * kUnit; ++i) {
    columns[i] = g_.channel(i);
    if (columns[i] < 0) continue;
    least[i] = greatest[i] = bias_[i] = spec.bias[columns[i]];
    for (int64_t tap = 0; tap < spec.taps_h * spec.taps_w; ++tap) {
      const int64_t weight = spec.weights[tap * g_.pitch + columns[i]];
      (weight < 0 ? least : greatest)[i] += 255 * weight;
    }
  }
  requantizer_.reset(new Requantizer(spec.requantize, columns.data(), g_.units * kUnit, least.data(), greatest.data()));
  place_steps();
  pack_weights(spec);
}

void DepthwiseCore::place_steps() {
  const int64_t last = g_.channels - (g_.channels - 1) / g_.chunk * g_.chunk;
  offsets_.allocate(2 * kPasses * pass_steps_);
  for (int64_t i = 0; i < 2 * kPasses * pass_steps_; ++i) {
    const int64_t step = i % pass_steps_, channels = i < kPasses * pass_steps_ ? g_.chunk : last;
    const int64_t set = g_.horizontal ? 0 : step / g_.taps;
    const int64_t column = step % g_.taps * g_.column_dilation * (g_.horizontal ? 4 : 1);
    offsets_[i] = (set * g_.phases + column % g_.phases) * g_.region + column / g_.phases * channels;
  }
}

void DepthwiseCore::pack_weights(const DepthwiseSpec& spec) {
  const int64_t row_bytes = pass_steps_ * kUnit * 4, last_chunk = (g_.channels - 1) / g_.chunk;
  Buffer<int16_t> rest;  // of one unit: what earlier passes left, [shared][steps of one pass][16][4]
  rest.allocate(g_.shared * row_bytes);
  spans_.allocate(g_.units);
  weights_.allocate_raw(g_.units * kPasses * g_.shared * row_bytes);
  int8_t* to = weights_.data();
  for (int64_t u = 0; u < g_.units; ++u) {
    int64_t passes = 1;
    int64_t channels[kUnit];
    for (int64_t i = 0; i < kUnit; ++i) channels[i] = g_.channel(u * kUnit + i);
    for (int64_t i = 0; i < g_.shared * pass_steps_ * 4; ++i) {
      const int64_t row = i / (pass_steps_ * 4), step = i / 4 % pass_steps_, byte = i % 4;
      const int64_t tap_h = g_.horizontal ? 0 : step / g_.taps * 4 + byte - row * g_.shared_taps;
      const int64_t tap_w = g_.horizontal ? step * 4 + byte : step % g_.taps;
      const bool exists = tap_h >= 0 && tap_h < spec.taps_h && tap_w < spec.taps_w;
      const int16_t* const weights = spec.weights + (exists ? (tap_h * spec.taps_w + tap_w) * g_.pitch : 0);
      int16_t* const target = rest.data() + i / 4 * kUnit * 4 + byte;
      for (int64_t lane = 0; lane < kUnit; ++lane) {
        const int weight = exists && channels[lane] >= 0 ? weights[channels[lane]] : 0;
        target[lane * 4] = static_cast<int16_t>(weight);
        passes = std::max<int64_t>(passes, weight > 0 ? (weight + 126) / 127 : (-weight + 127) / 128);
      }
    }
    const int64_t steps = passes * pass_steps_, chunk = g_.group > 1 ? 0 : u * kUnit / g_.chunk;
    const bool joins =
        span_count_ > 0 && spans_[span_count_ - 1].steps == steps && (g_.group > 1 || u * kUnit % g_.chunk != 0);
    if (joins) {
      ++spans_[span_count_ - 1].units;
    } else {
      spans_[span_count_++] = {u,
                               1,
                               steps,
                               to,
                               offsets_.data() + (chunk == last_chunk ? kPasses * pass_steps_ : 0),
                               {units_function(*requantizer_, 1, steps), units_function(*requantizer_, 2, steps)}};
    }
    for (int64_t pass = 0; pass < passes; ++pass) {
      for (int64_t row = 0; row < g_.shared; ++row) {
        int16_t* const left = rest.data() + row * row_bytes;
        int8_t* const packed = to + (row * passes + pass) * row_bytes;
        for (int64_t i = 0; i < row_bytes; ++i) {
          const int part = std::min(127, std::max(-128, static_cast<int>(left[i])));
          packed[i] = static_cast<int8_t>(part);
          left[i] = static_cast<int16_t>(left[i] - part);
        }
      }
    }
    to += passes * g_.shared * row_bytes;
  }
}

void DepthwiseCore::run(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const {
  if (others_ != nullptr) others_->run(rows, count, out, scratch);
  const int64_t offset = g_.shared_offset;
  for (int64_t block = 0; block < count; block += offset * g_.shared) {
    for (int64_t first = block; first < std::min(block + offset, count); ++first) {
      const int64_t together = std::min(g_.shared, (count - first + offset - 1) / offset);
      run_rows(rows + first * g_.row_stride, together, out + first, scratch);
    }
  }
}

// `count` output rows, shared_offset apart, from one set of interleaved columns.
void DepthwiseCore::run_rows(const uint8_t* const* rows, int64_t count, uint8_t* const* out, uint8_t* scratch) const {
  uint32_t* const dwords = reinterpret_cast<uint32_t*>(scratch);
  uint8_t* const padded = scratch + g_.sets * g_.phases * g_.region * 4;
  const int64_t taps_used = g_.taps_h + (count - 1) * g_.shared_taps;
  for (int64_t pixel = 0; pixel < g_.out_width; pixel += g_.strip) {
    const int64_t pixels = std::min(g_.strip, g_.out_width - pixel);
    const int64_t all = g_.columns(pixels), first = pixel * g_.stride - g_.pad_left;
    const int64_t left = std::min(all, std::max<int64_t>(0, -first));
    const int64_t inside = std::max<int64_t>(0, std::min(all, g_.width - first) - left);
    Columns columns{first + left, left, inside, all - left - inside};
    if (g_.horizontal) {
      // One padded row, so that all four taps of a dword find their column.
      std::memset(padded, static_cast<int>(padding_ & 0xFF), static_cast<size_t>(padded_row_bytes()));
      std::memcpy(padded + left * g_.pitch, rows[0] + columns.first * g_.pitch, static_cast<size_t>(inside * g_.pitch));
      columns = {0, 0, all, 0};
    }
    for (int64_t channel = 0, span = 0; channel < g_.channels; channel += g_.chunk) {
      const int64_t channels = std::min(g_.chunk, g_.channels - channel);
      for (int64_t set = 0; set < g_.sets; ++set) {
        const uint8_t* taps[4];
        for (int64_t i = 0; i < 4; ++i) {
          // Rows behind the last tap have zero weights: any row will do.
          const int64_t tap = set * 4 + i < taps_used ? set * 4 + i : 0;
          taps[i] = g_.horizontal ? padded + i * g_.column_dilation * g_.pitch : rows[tap * g_.row_dilation];
        }
        gather(taps, columns, channel, channels, dwords + set * g_.phases * g_.region);
      }
      span = run_chunk(dwords, channel, channels, pixel, pixels, span, count, out);
    }
  }
}

void DepthwiseCore::gather(const uint8_t* const* taps, const Columns& columns, int64_t channel, int64_t channels,
                           uint32_t* to) const {
  const uint8_t* from[4];
  for (int i = 0; i < 4; ++i) from[i] = taps[i] + columns.first * g_.pitch + g_.first_channel + channel;
  const int64_t end = columns.left + columns.inside, all = end + columns.right;
  if (g_.phases == 2) {
    uint32_t* const phase[2] = {to, to + g_.region};
    for (int64_t p = 0; p < 2; ++p) fill(phase[p], (columns.left + 1 - p) / 2 * channels, padding_);
    // The first column inside is of phase left % 2.
    const int64_t left = columns.left;
    uint32_t* const inside[2] = {phase[left % 2] + left / 2 * channels,
                                 phase[1 - left % 2] + (left + 1) / 2 * channels};
    interleave_phases(from, columns.inside * channels, phase_index_, inside);
    for (int64_t p = 0; p < 2; ++p) {
      const int64_t begin = (end + 1 - p) / 2;
      fill(phase[p] + begin * channels, ((all + 1 - p) / 2 - begin) * channels, padding_);
    }
    return;
  }
  fill(to, columns.left * channels, padding_);
  if (channels == g_.pitch) {
    interleave_columns(from, 1, 0, columns.inside * channels, to + columns.left * channels);
  } else {
    interleave_columns(from, columns.inside, g_.pitch, channels, to + columns.left * channels);
  }
  fill(to + end * channels, columns.right * channels, padding_);
}

int64_t DepthwiseCore::run_chunk(const uint32_t* dwords, int64_t channel, int64_t channels, int64_t pixel,
                                 int64_t pixels, int64_t span, int64_t count, uint8_t* const* out) const {
  const int64_t begin = channel / kUnit, end = begin + (g_.group * channels + kUnit - 1) / kUnit;
  UnitsRun run;
  run.pixel_step = g_.group * channels * (g_.phases == 2 ? 1 : g_.stride);
  run.requantizer = requantizer_.get();
  run.out_step = g_.group * g_.pitch;
  run.pixels = pixels / g_.group;
  run.pixel_bytes = g_.group * g_.channels;
  run.rest_bytes = (pixels - run.pixels * g_.group) * g_.channels;
  for (; span < span_count_ && spans_[span].first < end; ++span) {
    const Span& s = spans_[span];
    run.dwords = dwords + (s.first - begin) * kUnit;
    run.offsets = s.offsets;
    run.steps = s.steps;
    run.weights_step = g_.shared * s.steps * kUnit * 4;
    run.bias = bias_.data() + s.first * kUnit;
    run.first = s.first;
    run.units = s.units;
    for (int64_t row = 0; row < count; row += 2) {
      const int64_t rows = std::min<int64_t>(2, count - row);
      run.weights = s.weights + row * s.steps * kUnit * 4;
      for (int64_t r = 0; r < rows; ++r) {
        run.out[r] = out[(row + r) * g_.shared_offset] + pixel * g_.pitch + g_.first_channel + s.first * kUnit;
      }
      s.functions[rows - 1](run);
    }
  }
  return span;
}

}  // namespace

std::unique_ptr<Depthwise> make_depthwise(const DepthwiseSpec& spec) {
  if (spec.pairs) return nullptr;
  const int64_t whole = channels_by_columns(spec);
  std::unique_ptr<Depthwise> by_columns = whole > 0 ? make_columns_depthwise(spec, whole) : nullptr;
  if (by_columns == nullptr) return std::unique_ptr<Depthwise>(new DepthwiseCore(spec, 0, nullptr));
  if (whole == spec.channels) return by_columns;
  return std::unique_ptr<Depthwise>(new DepthwiseCore(spec, whole, std::move(by_columns)));
}

}  // namespace bittrue::avx512vnni
