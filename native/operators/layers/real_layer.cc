// conv and fully_connected on binary32 numbers: tiles of positions times panels of channels, each lane one channel.
#include "operators/layers/real_layer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "core/share.h"
#include "operators/core/window.h"
#include "operators/layers/eights.h"
#include "operators/layers/real_finish.h"

namespace bittrue {
namespace {

constexpr int64_t kPixels = 24;      // positions per block: a multiple of every tile's height
constexpr int64_t kRealRate = 8;     // multiply-adds of one nanosecond, about
constexpr int64_t kPatchDepth = 16;  // below, windows are gathered into one row
constexpr int64_t kExact = 1 << 24;  // integers below it are exact in binary32, whatever their order
constexpr int64_t kLargestTerm = 255 * 128;
constexpr int64_t kLargestMoved = 127 * 15;  // of weights of 4 bits that an offset is added to

// A piece of the terms whose sum is exact: elements [begin, begin + depth) of segments [first, first + segments).
struct Piece {
  int64_t first, segments, begin, depth;
};

// Whether products of whole eights of terms are rounded, and the others joined with their sums.
bool has_eights(const Step& step) {
  const auto rule = step.rules.find("sum_of_products");
  return rule != step.rules.end() && rule->second == "binary32_eights_then_fused";
}

// Chains that the terms of a sum take turns in, where its rule has several.
int64_t count_chains(const Step& step) {
  const auto rule = step.rules.find("sum_of_products");
  const bool several = rule != step.rules.end() && (rule->second == "binary32_fused_in_chains" ||
                                                    rule->second == "binary32_fused_by_columns_in_chains");
  const int64_t chains = several ? step.integer("chains", 1, 4) : 1;
  require(chains != 3, "three chains");
  return chains;
}

class CoreConvolution final : public Kernel {
 public:
  // weights[o * terms + k], or weights[k * out_c + o] when `transposed`. `rows` rows of the input share a scale each in
  // hybrid layers; `bias_alone`: where all of them are zero, the bias is the result.
  CoreConvolution(const Step& step, const CoreSet& cores, const Window& window, int64_t groups, bool transposed,
                  int64_t rows, bool bias_alone);

  void run(const Run& run) const override;
  int64_t scratch_bytes(int threads) const override {
    return rows_.bytes() + packed_bytes() + threads * worker_bytes();
  }
  bool packs(size_t input) const override { return input == 1 && weights_.constant(); }
  std::string note() const override { return rows_.active() ? "quantized rows, exact sums" : "real sums in order"; }

 private:
  struct Place {
    const float* in;
    const float* packed;
    const float* bias;
    const rules::RowScale* scales;
    bool only_bias, finite;
    float* out;
  };
  struct Worker {
    const float** rows;     // [segments][kPixels]
    const float** shifted;  // [kPixels], for pieces of a segment
    float* sums;            // [kPixels][panel]
    double* totals;         // the same, over several pieces
    float* patches;         // [kPixels][terms]
    float* chains;          // [chains - 1][kPixels][panel]
  };

  int64_t panel() const { return core_.lanes * core_.vectors; }
  int64_t packed_bytes() const { return weights_.constant() ? 0 : round_up(packed_floats_ * 4, 64); }
  int64_t worker_bytes() const {
    return round_up((segments_ + 1) * kPixels * 8, 64) + 3 * round_up(kPixels * panel() * 4, 64) +
           round_up(patched_ ? kPixels * terms_ * 4 : 0, 64) + (chains_ - 1) * round_up(kPixels * panel() * 4, 64);
  }
  Worker worker(uint8_t* scratch) const;
  bool pack(const uint8_t* stored, float* packed) const;
  bool block(const Place& place, const Worker& worker, int64_t first, int64_t count, int64_t begin, int64_t end) const;
  void find_rows(const Place& place, const Worker& worker, int64_t first, int64_t count, int64_t group) const;
  void sum(const Worker& worker, int64_t count, const float* packed, int64_t width, bool finite) const;
  void sum_chains(const Worker& worker, int64_t count, const float* packed, int64_t width) const;
  void sum_eights(const Worker& worker, int64_t count, const float* packed, int64_t width, bool finite) const;
  void place_chains();
  int64_t place_of(int64_t k) const { return places_.empty() ? k : places_[k]; }

  // Columns [column, column + count) of a group, packed [terms][width].
  struct Unit {
    int64_t group, column, count, width, offset;
  };
  void begin_with_bias(const Place& place, const Worker& worker, int64_t count, const Unit& unit) const;
  void find_signs(const Place& place, const Worker& worker, int64_t first, int64_t count, const Unit& unit) const;

  const RealMatmul& core_;
  Window window_;
  int64_t depth_, terms_, segments_, in_pixel_, out_pixel_, pixels_per_row_, packed_floats_ = 0;
  bool transposed_, bias_alone_, patched_, finite_ = false;
  RealWeights weights_;
  RowQuantizer rows_;
  RealFinish finish_;
  std::vector<Unit> units_;
  std::vector<Piece> pieces_;
  // Terms of several chains: chain after chain, and then what is left; where each term lies, and where these begin.
  int64_t chains_;
  std::vector<int64_t> places_, begins_;
  // Each product and its sum are rounded once; but for whole eights of a tap's terms.
  bool joined_, eights_ = false;
  std::vector<float> packed_, zeros_;
};

CoreConvolution::CoreConvolution(const Step& step, const CoreSet& cores, const Window& window, int64_t groups,
                                 bool transposed, int64_t rows, bool bias_alone)
    : core_(cores.real_matmul()),
      window_(window),
      depth_(window.in_c / groups),
      terms_(window.taps() * depth_),
      transposed_(transposed),
      bias_alone_(bias_alone),
      weights_(step.input(1)),
      rows_(step, rows),
      finish_(step, window.out_c, rows_.active()),
      chains_(count_chains(step)),
      joined_(finish_.joined() || (has_eights(step) && depth_ % kEight != 0)),
      eights_(joined_ && has_eights(step) && depth_ > kEight) {
  const Operand &in = step.input(0), &out = step.output();
  require(in.type == Type::f32 && out.type == Type::f32, "both sides must be real");
  require(in.row_stride % 4 == 0 && out.row_stride % 4 == 0, "rows are not made of whole numbers");
  require(!rows_.active() || (in.dense() && weights_.constant()), "hybrid layers need dense inputs, constant weights");
  require(terms_ > 0 && terms_ <= int64_t{1} << 31, "the filter is very large");
  in_pixel_ = in.dense() ? window.in_c : in.row_stride / 4;
  out_pixel_ = out.dense() ? window.out_c : out.row_stride / 4;
  pixels_per_row_ = std::max<int64_t>(1, window.pixels() / std::max<int64_t>(1, rows));
  const int64_t per_group = window.out_c / groups;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t c = 0; c < per_group; c += panel()) {
      const int64_t count = std::min(panel(), per_group - c), width = round_up(count, core_.lanes);
      units_.push_back({g, g * per_group + c, count, width, packed_floats_});
      packed_floats_ += terms_ * width;
    }
  }
  if (chains_ > 1) place_chains();
  if (weights_.constant()) {
    packed_.resize(static_cast<size_t>(packed_floats_));
    finite_ = pack(nullptr, packed_.data()) || finish_.fused();
    weights_.forget();
  }
  // A patch holds zeros outside of the image.
  patched_ = chains_ > 1 || (finite_ && depth_ < kPatchDepth && window.taps() > 1 && !eights_);
  segments_ = patched_ ? 1 : window.taps();
  zeros_.assign(static_cast<size_t>(depth_), 0.0f);
  if (!rows_.active()) return;
  require(step.bounded && step.magnitude < int64_t{1} << 31, "sums may leave 32 bits");
  require(step.rules.count("weights_offset") == 0 || terms_ * kLargestMoved < kExact, "sums are not exact in binary32");
  if (step.magnitude < kExact) return;
  const int64_t length = patched_ ? terms_ : depth_, most = kExact / kLargestTerm;
  if (length <= most) {
    for (int64_t s = 0; s < segments_; s += most / length) {
      pieces_.push_back({s, std::min(most / length, segments_ - s), 0, length});
    }
    return;
  }
  for (int64_t s = 0; s < segments_; ++s) {
    for (int64_t k = 0; k < length; k += most) pieces_.push_back({s, 1, k, std::min(most, length - k)});
  }
}

// Whether all weights are finite: then terms outside of the image may be products with 0, which add nothing.
bool CoreConvolution::pack(const uint8_t* stored, float* packed) const {
  bool finite = true;
  for (const Unit& unit : units_) {
    float* to = packed + unit.offset;
    std::fill_n(to, terms_ * unit.width, 0.0f);
    for (int64_t i = 0; i < unit.count; ++i) {
      for (int64_t k = 0; k < terms_; ++k) {
        const int64_t o = unit.column + i;
        const float w = weights_.at(stored, transposed_ ? k * window_.out_c + o : o * terms_ + k);
        finite &= std::isfinite(w);
        to[place_of(k) * unit.width + i] = w;
      }
    }
  }
  return finite;
}

CoreConvolution::Worker CoreConvolution::worker(uint8_t* scratch) const {
  Worker w{};
  w.rows = reinterpret_cast<const float**>(scratch);
  w.shifted = w.rows + segments_ * kPixels;
  scratch += round_up((segments_ + 1) * kPixels * 8, 64);
  w.sums = reinterpret_cast<float*>(scratch);
  scratch += round_up(kPixels * panel() * 4, 64);
  w.totals = reinterpret_cast<double*>(scratch);
  w.patches = reinterpret_cast<float*>(scratch + 2 * round_up(kPixels * panel() * 4, 64));
  w.chains = w.patches + round_up(patched_ ? kPixels * terms_ : 0, 16);
  return w;
}

// Of two chains even and odd terms of every tap; of four, whole fours of terms, and then what is left.
void CoreConvolution::place_chains() {
  require(chains_ == 2 || window_.taps() == 1, "four chains of a window");
  places_.resize(static_cast<size_t>(terms_));
  const int64_t whole = chains_ == 4 ? depth_ / 4 * 4 : depth_;
  int64_t next = 0;
  for (int64_t chain = 0; chain < chains_; ++chain) {
    begins_.push_back(next);
    for (int64_t tap = 0; tap < window_.taps(); ++tap) {
      for (int64_t k = chain; k < whole; k += chains_) places_[tap * depth_ + k] = next++;
    }
  }
  begins_.push_back(next);
  for (int64_t k = whole; k < depth_; ++k) places_[k] = next++;
}

void CoreConvolution::run(const Run& run) const {
  const int64_t pixels = window_.pixels(), work = pixels * window_.out_c * terms_;
  if (pixels == 0 || window_.out_c == 0) return;
  Place place{};
  place.in = rows_.run(run, reinterpret_cast<const float*>(run.inputs[0]), run.scratch);
  place.scales = rows_.active() ? rows_.scales(run.scratch) : nullptr;
  place.only_bias = bias_alone_ && rows_.active() && rows_.all_zero(run.scratch);
  place.packed = packed_.data();
  place.finite = finite_;
  if (!weights_.constant()) {
    auto* packed = reinterpret_cast<float*>(run.scratch + rows_.bytes());
    place.finite = pack(run.inputs[1], packed) || finish_.fused();
    place.packed = packed;
  }
  place.bias = finish_.has_bias() ? reinterpret_cast<const float*>(run.inputs[2]) : nullptr;
  place.out = reinterpret_cast<float*>(run.outputs[0]);
  const int threads = run.pool.threads_for(work / kRealRate);
  const int64_t blocks = (pixels + kPixels - 1) / kPixels, units = static_cast<int64_t>(units_.size());
  const int64_t parts = cut(threads > 1 && blocks < 4 * threads ? std::min<int64_t>(units, 4 * threads) : 1,
                            work / blocks, kTaskMostWork, units);
  std::atomic<bool> odd{false};
  run.pool.parallel(blocks * parts, threads, [&](int64_t task, int index) {
    const Worker mine = worker(run.scratch + rows_.bytes() + packed_bytes() + index * worker_bytes());
    const int64_t first = task / parts * kPixels, part = task % parts;
    if (block(place, mine, first, std::min(kPixels, pixels - first), units * part / parts,
              units * (part + 1) / parts)) {
      odd = true;
    }
  });
  if (odd) throw Undefined{};
}

// Positions [first, first + count) and units [begin, end). Returns whether a result is NaN.
bool CoreConvolution::block(const Place& place, const Worker& worker, int64_t first, int64_t count, int64_t begin,
                            int64_t end) const {
  bool odd = false;
  int64_t found = -1;
  for (int64_t u = begin; u < end; ++u) {
    const Unit& unit = units_[u];
    if (unit.group != found) find_rows(place, worker, first, count, unit.group);
    found = unit.group;
    if (finish_.fused()) begin_with_bias(place, worker, count, unit);
    if (joined_) std::fill_n(worker.sums, count * unit.width, 0.0f);
    sum(worker, count, place.packed + unit.offset, unit.width, place.finite);
    if (joined_ && place.finite && window_.padded()) find_signs(place, worker, first, count, unit);
    for (int64_t r = 0; r < count; ++r) {
      const rules::RowScale* scale = place.scales == nullptr ? nullptr : place.scales + (first + r) / pixels_per_row_;
      odd |= finish_.run(worker.sums + r * unit.width, unit.column, unit.count, scale, place.bias, place.only_bias,
                         place.out + (first + r) * out_pixel_ + unit.column);
    }
  }
  return odd;
}

// Fused sums start from what lies in their place; lanes beyond the unit's columns come to nothing.
void CoreConvolution::begin_with_bias(const Place& place, const Worker& worker, int64_t count, const Unit& unit) const {
  for (int64_t r = 0; r < count; ++r) {
    float* sums = worker.sums + r * unit.width;
    std::fill_n(sums, unit.width, 0.0f);
    if (place.bias != nullptr) std::copy_n(place.bias + unit.column, unit.count, sums);
  }
}

// Products with what lies outside of the image, which are left out, may have changed the sign of a sum of 0 that is left of
// products too small to be numbers.
void CoreConvolution::find_signs(const Place& place, const Worker& worker, int64_t first, int64_t count,
                                 const Unit& unit) const {
  const Window& w = window_;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t pixel = first + r, image = pixel / w.out_w / w.out_h;
    const int64_t x0 = pixel % w.out_w * w.stride_w - w.pad_left;
    const int64_t y0 = pixel / w.out_w % w.out_h * w.stride_h - w.pad_top;
    const int64_t x1 = x0 + (w.filter_w - 1) * w.dilation_w, y1 = y0 + (w.filter_h - 1) * w.dilation_h;
    if (x0 >= 0 && y0 >= 0 && x1 < w.in_w && y1 < w.in_h) continue;
    for (int64_t n = 0; n < unit.count; ++n) {
      float& sum = worker.sums[r * unit.width + n];
      if (sum != 0.0f) continue;
      const float* weights = place.packed + unit.offset + n;
      sum = 0.0f;
      for (int64_t i = 0; i < w.filter_h; ++i) {
        for (int64_t j = 0; j < w.filter_w; ++j, weights += depth_ * unit.width) {
          const int64_t y = y0 + i * w.dilation_h, x = x0 + j * w.dilation_w;
          if (y < 0 || y >= w.in_h || x < 0 || x >= w.in_w) continue;
          const float* from = place.in + ((image * w.in_h + y) * w.in_w + x) * in_pixel_ + unit.group * depth_;
          const int64_t whole = eights_ ? depth_ / kEight * kEight : 0;
          for (int64_t k = 0; k < whole; ++k) sum += from[k] * weights[k * unit.width];
          for (int64_t k = whole; k < depth_; ++k) sum = std::fma(from[k], weights[k * unit.width], sum);
        }
      }
    }
  }
}

// Where the segments of each position begin; outside of the image zeros, or nothing when a weight is not finite.
void CoreConvolution::find_rows(const Place& place, const Worker& worker, int64_t first, int64_t count,
                                int64_t group) const {
  const Window& w = window_;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t pixel = first + r, image = pixel / w.out_w / w.out_h;
    const int64_t x0 = pixel % w.out_w * w.stride_w - w.pad_left;
    const int64_t y0 = pixel / w.out_w % w.out_h * w.stride_h - w.pad_top;
    float* patch = worker.patches + r * terms_;
    for (int64_t i = 0, tap = 0, first_term = 0; i < w.filter_h; ++i) {
      const int64_t y = y0 + i * w.dilation_h;
      for (int64_t j = 0; j < w.filter_w; ++j, ++tap, first_term += depth_) {
        const int64_t x = x0 + j * w.dilation_w;
        const bool inside = y >= 0 && y < w.in_h && x >= 0 && x < w.in_w;
        const float* from =
            inside ? place.in + ((image * w.in_h + y) * w.in_w + x) * in_pixel_ + group * depth_ : zeros_.data();
        if (patched_) {
          if (places_.empty()) {
            std::copy_n(from, depth_, patch + first_term);
          } else {
            for (int64_t k = 0; k < depth_; ++k) patch[places_[first_term + k]] = from[k];
          }
        } else {
          worker.rows[tap * kPixels + r] = inside || place.finite ? from : nullptr;
        }
      }
    }
    if (patched_) worker.rows[r] = worker.patches + r * terms_;
  }
}

// Chains but the first start from +0; their sum takes what is left.
void CoreConvolution::sum_chains(const Worker& worker, int64_t count, const float* packed, int64_t width) const {
  RealRows rows;
  rows.rows = worker.shifted;
  rows.capacity = kPixels;
  rows.count = count;
  rows.segments = 1;
  rows.stride = width;
  const auto run = [&](int64_t begin, int64_t end, float* sums) {
    if (begin == end) return;
    for (int64_t r = 0; r < count; ++r) worker.shifted[r] = worker.rows[r] + begin;
    rows.depth = end - begin;
    rows.sums = sums;
    core_.run_fused(rows, packed + begin * width, width);
  };
  float* chains[4] = {worker.sums};
  const int64_t floats = count * width;
  for (int64_t c = 0; c < chains_; ++c) {
    if (c > 0) {
      chains[c] = worker.chains + (c - 1) * round_up(kPixels * panel(), 16);
      std::fill_n(chains[c], floats, 0.0f);
    }
    run(begins_[c], begins_[c + 1], chains[c]);
  }
  for (int64_t i = 0; i < floats; ++i) {
    const float pair = chains[0][i] + chains[1][i];
    worker.sums[i] = chains_ == 2 ? pair : pair + (chains[2][i] + chains[3][i]);
  }
  run(begins_[chains_], terms_, worker.sums);
}

// Tap by tap; those outside of the image are left out where a weight is not finite.
void CoreConvolution::sum_eights(const Worker& worker, int64_t count, const float* packed, int64_t width,
                                 bool finite) const {
  const int64_t together = finite ? count : 1;
  for (int64_t r = 0; r < count; r += together) {
    bool begins = true;
    for (int64_t tap = 0; tap < segments_; ++tap) {
      const float** rows = worker.rows + tap * kPixels + r;
      if (*rows == nullptr) continue;
      add_eights(core_, rows, together, depth_, packed + tap * depth_ * width, width, begins, worker.shifted,
                 worker.sums + r * width);
      begins = false;
    }
  }
}

void CoreConvolution::sum(const Worker& worker, int64_t count, const float* packed, int64_t width, bool finite) const {
  if (chains_ > 1) return sum_chains(worker, count, packed, width);
  if (eights_) return sum_eights(worker, count, packed, width, finite);
  const int64_t depth = patched_ ? terms_ : depth_;
  RealRows rows;
  rows.rows = worker.rows;
  rows.capacity = kPixels;
  rows.count = count;
  rows.segments = segments_;
  rows.depth = depth;
  rows.sums = worker.sums;
  rows.stride = width;
  if (!finite) {
    // One position after the other, as each leaves out segments of its own.
    rows.count = 1;
    for (int64_t r = 0; r < count; ++r, ++rows.rows, rows.sums += width) {
      (joined_ ? core_.run_fused : core_.run)(rows, packed, width);
    }
    return;
  }
  if (pieces_.empty()) {
    (finish_.fused() || joined_ ? core_.run_fused : core_.run)(rows, packed, width);
    return;
  }
  std::fill_n(worker.totals, count * width, 0.0);
  for (const Piece& piece : pieces_) {
    rows.rows = worker.rows + piece.first * kPixels;
    if (piece.begin > 0) {
      for (int64_t r = 0; r < count; ++r) worker.shifted[r] = rows.rows[r] + piece.begin;
      rows.rows = worker.shifted;
    }
    rows.segments = piece.segments;
    rows.depth = piece.depth;
    core_.run(rows, packed + (piece.first * depth + piece.begin) * width, width);
    for (int64_t i = 0; i < count * width; ++i) worker.totals[i] += worker.sums[i];
  }
  for (int64_t i = 0; i < count * width; ++i) worker.sums[i] = static_cast<float>(worker.totals[i]);
}

bool is_fused(const Step& step) {
  if (step.rules.count("sum_of_products") == 0) return false;
  const std::string& rule = step.rule("sum_of_products");
  return rule != "binary32_in_order" && rule != "binary32_from_bias_inside";
}

// Whether sums begin with the bias, and what lies outside of an image is left out.
bool stays_inside(const Step& step) {
  const auto rule = step.rules.find("sum_of_products");
  return rule != step.rules.end() &&
         (rule->second == "binary32_from_bias_inside" || rule->second == "binary32_fused_from_bias_inside");
}

bool walks_columns(const Step& step) {
  const std::string& rule = step.rule("sum_of_products");
  return rule == "binary32_fused_from_bias_by_columns" || rule == "binary32_fused_by_columns_in_chains";
}

// Whether sums of this step have a native order; filters of one channel may be walked by columns.
void require_order(const Step& step, bool columns) {
  if (step.rules.count("sum_of_products") == 0) return;
  const std::string& rule = step.rule("sum_of_products");
  require(rule == "binary32_in_order" || rule == "binary32_fused_in_order" || rule == "binary32_fused_from_bias" ||
              rule == "binary32_fused_in_chains" || (columns && (walks_columns(step) || stays_inside(step))) ||
              (has_eights(step) && !columns),
          "no native rule for sums");
}

// Every channel of the image by itself, `multiplier` times.
class RealDepthwise final : public Kernel {
 public:
  RealDepthwise(const Step& step, const CoreSet& cores, const Window& window, int64_t multiplier)
      : taps_(is_fused(step) ? cores.real_taps_fused() : cores.real_taps()),
        fused_(is_fused(step)),
        by_columns_(fused_ && walks_columns(step)),
        chains_(count_chains(step)),
        window_(window),
        multiplier_(multiplier),
        weights_(step.input(1)),
        rows_(step, std::max<int64_t>(1, window.batch)),
        finish_(step, window.out_c, rows_.active()) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f32 && out.type == Type::f32, "both sides must be real");
    require(in.dense() && out.dense(), "both sides must be dense");
    require(window.taps() <= 1 << 16, "the filter is very large");
    require(chains_ <= 2, "more chains than two");
    require(!rows_.active() || weights_.constant(), "hybrid layers need constant weights");
    require(!rows_.active() || (step.bounded && step.magnitude < kExact), "sums are not exact in binary32");
    if (finish_.fused()) zeros_.assign(static_cast<size_t>(window.out_c), 0.0f);
    // Rounded products begin with +0, so that the bias is a tap of its own.
    if (finish_.from_bias() && !fused_) ones_.assign(static_cast<size_t>(window.out_c), 1.0f);
  }

  bool packs(size_t input) const override { return input == 1 && weights_.constant(); }
  std::string note() const override { return rows_.active() ? "quantized rows, exact sums" : "real sums in order"; }
  int64_t scratch_bytes(int threads) const override { return rows_.bytes() + threads * worker_bytes(); }

  void run(const Run& run) const override {
    const Window& w = window_;
    const int64_t rows = w.batch * w.out_h, work = w.pixels() * w.out_c * w.taps();
    if (w.pixels() == 0 || w.out_c == 0) return;
    const float* in = rows_.run(run, reinterpret_cast<const float*>(run.inputs[0]), run.scratch);
    const float* weights = weights_.data(run.inputs[1]);
    const float* bias = finish_.has_bias() ? reinterpret_cast<const float*>(run.inputs[2]) : nullptr;
    // A bias of -0 is +0 as a tap, which shows where all products are zeros.
    for (int64_t c = 0; c < w.out_c && !ones_.empty() && bias != nullptr; ++c) {
      if (bias[c] == 0.0f && std::signbit(bias[c])) throw Undefined{};
    }
    const int threads = run.pool.threads_for(work / kRealRate);
    std::atomic<bool> odd{false};
    run.pool.parallel(rows, threads, [&](int64_t row, int index) {
      uint8_t* scratch = run.scratch + rows_.bytes() + index * worker_bytes();
      auto** inputs = reinterpret_cast<const float**>(scratch);
      const float** filters = inputs + w.taps() + 1;
      auto* sums = reinterpret_cast<float*>(scratch + round_up((w.taps() + 1) * 16, 64));
      float* repeated = sums + chains_ * round_up(w.out_c, 16);
      const int64_t image = row / w.out_h, y0 = row % w.out_h * w.stride_h - w.pad_top;
      const rules::RowScale* scale = rows_.active() ? rows_.scales(run.scratch) + image : nullptr;
      for (int64_t column = 0; column < w.out_w; ++column) {
        run.check(index);
        int64_t count = 0;
        if (!ones_.empty() && bias != nullptr) {
          inputs[0] = bias, filters[0] = ones_.data();
          count = 1;
        }
        for (int64_t t = 0; t < w.taps(); ++t) {
          const int64_t at = chains_ == 1 ? count : t % 2 * even_taps() + t / 2;
          const int64_t i = by_columns_ ? t % w.filter_h : t / w.filter_w;
          const int64_t j = by_columns_ ? t / w.filter_h : t % w.filter_w;
          const int64_t y = y0 + i * w.dilation_h, x = column * w.stride_w - w.pad_left + j * w.dilation_w;
          if (y < 0 || y >= w.in_h || x < 0 || x >= w.in_w) {
            if (!finish_.fused()) continue;
            inputs[at] = zeros_.data();
          } else {
            const float* from = in + ((image * w.in_h + y) * w.in_w + x) * w.in_c;
            if (multiplier_ > 1) {
              float* to = repeated + count * w.out_c;
              for (int64_t c = 0; c < w.in_c; ++c) to = std::fill_n(to, multiplier_, from[c]);
              from = repeated + count * w.out_c;
            }
            inputs[at] = from;
          }
          filters[at] = weights + (i * w.filter_w + j) * w.out_c;
          ++count;
        }
        if (finish_.from_bias() && fused_ && bias != nullptr) {
          std::copy_n(bias, w.out_c, sums);
        } else {
          std::fill_n(sums, w.out_c, 0.0f);
        }
        sum_taps(inputs, filters, count, sums);
        float* out = reinterpret_cast<float*>(run.outputs[0]) + (row * w.out_w + column) * w.out_c;
        if (finish_.run(sums, 0, w.out_c, scale, bias, false, out)) odd = true;
      }
    });
    if (odd) throw Undefined{};
  }

 private:
  // Of two chains, those of even taps and then of odd ones, whose sums lie behind the others.
  void sum_taps(const float* const* inputs, const float* const* filters, int64_t count, float* sums) const {
    if (chains_ == 1) return taps_(inputs, filters, count, window_.out_c, sums);
    float* odd = sums + round_up(window_.out_c, 16);
    std::fill_n(odd, window_.out_c, 0.0f);
    taps_(inputs, filters, even_taps(), window_.out_c, sums);
    taps_(inputs + even_taps(), filters + even_taps(), count - even_taps(), window_.out_c, odd);
    for (int64_t c = 0; c < window_.out_c; ++c) sums[c] += odd[c];
  }
  int64_t even_taps() const { return (window_.taps() + 1) / 2; }
  int64_t worker_bytes() const {
    const int64_t repeated = multiplier_ > 1 ? (window_.taps() + 1) * window_.out_c : 0;
    return round_up((window_.taps() + 1) * 16, 64) + chains_ * round_up(window_.out_c, 16) * 4 +
           round_up(repeated * 4, 64);
  }

  RealTaps taps_;
  bool fused_, by_columns_;
  int64_t chains_;
  Window window_;
  int64_t multiplier_;
  RealWeights weights_;
  RowQuantizer rows_;
  RealFinish finish_;
  std::vector<float> zeros_, ones_;
};

// Products of bytes and sums of weights are exact here; some runtime's are not for a few weights.
void require_exact_integers(const Step& step, int64_t channels, int64_t terms) {
  if (step.rules.count("byte_products") == 0) return;
  const Operand& weights = step.input(1);
  require(weights.constant != nullptr && weights.elements == channels * terms, "integer weights must be constant");
  const auto* bytes = static_cast<const int8_t*>(weights.constant);
  const bool asymmetric = step.text("quantize") == "asymmetric";
  const std::string& products = step.rule("byte_products");
  require(products == "exact" || products == "low_end_negated_by_sixteens" || products == "pairs_wrap_by_sixteens",
          "no native rule for products of bytes");
  // Convolutions use an exact product unless they are symmetric with an odd number of filters, or products of pixels.
  const auto rows = step.rules.find("rows");
  const bool matrix = step.name != "conv" || (rows != step.rules.end() && rows->second == "per_pixel");
  const bool by_bytes = matrix || (!asymmetric && channels % 4 != 0);
  if (products != "exact" && by_bytes && terms >= 16) {
    // Pairs that wrap are of -128 times -128.
    require(std::find(bytes, bytes + weights.elements, int8_t{-128}) == bytes + weights.elements,
            "a weight of -128, whose products the rule makes differently");
  }
  if (step.rules.count("row_sums") == 0 || step.rule("row_sums") == "exact" || !asymmetric) return;
  require(step.rule("row_sums") == "s16_lanes_of_eight", "no native rule for sums of weights");
  for (int64_t c = 0; c < channels; ++c) {
    int64_t lanes[8] = {};
    const int64_t whole = terms / 16 * 16;
    for (int64_t k = 0; k < terms / 8 * 8; ++k) lanes[k < whole ? k % 16 / 2 : k % 8] += bytes[c * terms + k];
    for (const int64_t lane : lanes) require(lane == static_cast<int16_t>(lane), "sums of weights that leave 16 bits");
  }
}

}  // namespace

bool is_real_layer(const Step& step) {
  return step.rules.count("sum_of_products") != 0 || step.rules.count("quantize_asymmetric") != 0 ||
         step.rules.count("quantize_symmetric") != 0;
}

std::unique_ptr<Kernel> make_real_conv2d(const Step& step, const CoreSet& cores) {
  const Window window = read_full_window(step);
  const Operand& filter = step.input(1);
  const int64_t groups = step.integer("groups", 1, std::max<int64_t>(1, window.in_c));
  require(window.in_c > 0 && window.in_c % groups == 0 && window.out_c % groups == 0 && window.out_c > 0,
          "channels do not split into groups");
  require(filter.rank() == 4 && filter.shape[0] == window.out_c && filter.shape[1] == window.filter_h &&
              filter.shape[2] == window.filter_w && filter.shape[3] == window.in_c / groups,
          "the filter's shape differs");
  require_order(step, false);
  require_exact_integers(step, window.out_c, window.taps() * filter.shape[3]);
  const auto rows = step.rules.find("rows");
  const bool by_pixel = rows != step.rules.end() && rows->second == "per_pixel";
  require(by_pixel || rows == step.rules.end() || rows->second == "per_image", "no native rule for rows");
  if (by_pixel) {
    const int64_t pixels = window.batch * window.in_h * window.in_w;
    require(groups == 1 && window.taps() == 1 && pixels == window.pixels() && !window.padded(), "rows are no pixels");
    return std::make_unique<CoreConvolution>(step, cores, window, 1, false, std::max<int64_t>(1, pixels), true);
  }
  return std::make_unique<CoreConvolution>(step, cores, window, groups, false, std::max<int64_t>(1, window.batch),
                                           false);
}

std::unique_ptr<Kernel> make_real_depthwise_conv2d(const Step& step, const CoreSet& cores) {
  const Window window = read_full_window(step);
  const Operand& filter = step.input(1);
  require(filter.rank() == 4 && filter.shape[0] == 1 && filter.shape[1] == window.filter_h &&
              filter.shape[2] == window.filter_w && filter.shape[3] == window.out_c && window.in_c > 0 &&
              window.out_c % window.in_c == 0,
          "the filter's shape differs");
  require_order(step, true);
  const bool columns = is_fused(step) && walks_columns(step);
  if (window.in_c == 1 && !columns && !stays_inside(step)) {
    return std::make_unique<CoreConvolution>(step, cores, window, 1, true, std::max<int64_t>(1, window.batch), false);
  }
  return std::make_unique<RealDepthwise>(step, cores, window, window.out_c / window.in_c);
}

std::unique_ptr<Kernel> make_real_fully_connected(const Step& step, const CoreSet& cores) {
  require(step.input(0).dense() && step.output().dense(), "both sides must be dense");
  require_order(step, false);
  const Window window = window_of_rows(step);
  require_exact_integers(step, window.out_c, window.in_c);
  return std::make_unique<CoreConvolution>(step, cores, window, 1, false, std::max<int64_t>(1, window.in_w), true);
}

}  // namespace bittrue
