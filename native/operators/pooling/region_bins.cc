// region_bins: averages, or largest products, of bins of regions, sampled between pixels, and region_maxima: largest
// pixels of bins; roi_align: averages of bytes by integer weights. Regions that the reference refuses, and sums that are no number, have no defined result.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/rounding.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

// x [N, C, H, W], regions [R, 4 or 5], results [R, C, bins down, bins across].
template <class T>
class RegionKernel : public Kernel {
 protected:
  RegionKernel(const Step& step, int64_t numbers) : scale_(static_cast<T>(step.real("spatial_scale"))) {
    require_reals<T>(step);
    const Operand &x = step.input(0), &regions = step.input(1);
    require(x.rank() == 4 && regions.type == x.type && regions.dense() && regions.rank() == 2 &&
                regions.shape[1] == numbers,
            "the shapes do not fit");
    const std::vector<int64_t>& bins = step.list("bins");
    regions_ = regions.shape[0], images_ = x.shape[0], channels_ = x.shape[1];
    height_ = x.shape[2], width_ = x.shape[3];
    const std::vector<int64_t> shape = {regions_, channels_, bins.at(0), bins.at(bins.size() - 1)};
    require(bins.size() == 2 && step.output().shape == shape && x.elements > 0, "the shapes do not fit");
    down_ = bins[0], across_ = bins[1];
  }

  int64_t plane() const { return height_ * width_; }
  int64_t bins() const { return down_ * across_; }

  T scale_;
  int64_t regions_ = 0, images_ = 0, channels_ = 0, height_ = 0, width_ = 0, down_ = 0, across_ = 0;
};

constexpr int64_t kMostRegionSamples = 1 << 12;

// The samples of the bins along one axis.
template <class T>
struct RegionAxis {
  T start, bin;
  int64_t size, count;

  // Whether sample `i` of a bin lies near the image, and its pixels and the weight of the second, which are 0 if not.
  bool at(int64_t number, int64_t i, int64_t* low, int64_t* high, T* part) const {
    const T inside = (static_cast<T>(i) + T{0.5}) * bin / static_cast<T>(count);
    T place = start + static_cast<T>(number) * bin + inside;
    const bool near = !(place < -T{1} || place > static_cast<T>(size));
    if (!(near && place > T{0})) place = T{0};
    *low = static_cast<int64_t>(place);
    const bool last = *low >= size - 1;
    if (last) *low = size - 1;
    *high = last ? *low : *low + 1;
    *part = last ? T{0} : place - static_cast<T>(*low);
    return near;
  }
};

template <class T>
class RegionBins final : public RegionKernel<T> {
  using Base = RegionKernel<T>;
  using Base::scale_, Base::regions_, Base::images_, Base::channels_, Base::height_, Base::width_, Base::down_,
      Base::across_, Base::plane, Base::bins;

 public:
  explicit RegionBins(const Step& step)
      : Base(step, 4),
        given_(step.integer("sampling_ratio", 0, kMostRegionSamples)),
        half_pixel_(step.integer("half_pixel", 0, 1) != 0),
        maximum_(step.integer("maximum", 0, 1) != 0) {
    const Operand& images = step.input(2);
    require(plane() < int64_t{1} << 31, "planes are very large");
    require(images.type == Type::s64 && images.dense() && images.elements == regions_, "the shapes do not fit");
  }

  void run(const Run& run) const override {
    const auto* images = reinterpret_cast<const int64_t*>(run.inputs[2]);
    for (int64_t r = 0; r < regions_; ++r) {
      if (images[r] < 0 || images[r] >= images_) throw Undefined();
    }
    for_rows(run, regions_, 4 * channels_ * bins(), [&](int64_t region, int worker) {
      const auto* x = reinterpret_cast<const T*>(run.inputs[0]) + images[region] * channels_ * plane();
      auto* out = reinterpret_cast<T*>(run.outputs[0]) + region * channels_ * bins();
      auto* samples = reinterpret_cast<Sample*>(run.scratch) + worker * kTogether;
      return bins_of(run, reinterpret_cast<const T*>(run.inputs[1]) + 4 * region, x, samples, out, worker);
    });
  }
  int64_t scratch_bytes(int threads) const override {
    return threads * kTogether * static_cast<int64_t>(sizeof(Sample));
  }

 private:
  static constexpr int64_t kTogether = 1024;

  struct Sample {
    int32_t offsets[4];
    T weights[4];
  };

  bool make_axis(T start, T length, int64_t bins, int64_t size, RegionAxis<T>* axis) const {
    const T bin = length / static_cast<T>(bins);
    if (!(std::fabs(bin) <= static_cast<T>(kMostRegionSamples))) return false;
    const auto made = static_cast<int64_t>(std::ceil(bin));
    *axis = {start, bin, size, given_ != 0 ? given_ : std::max<int64_t>(made, 0)};
    return true;
  }

  bool bins_of(const Run& run, const T* region, const T* x, Sample* samples, T* out, int worker) const {
    const T offset = half_pixel_ ? T{0.5} : T{0};
    const T left = region[0] * scale_ - offset, top = region[1] * scale_ - offset;
    T wide = region[2] * scale_ - offset - left, high = region[3] * scale_ - offset - top;
    if (!half_pixel_) wide = std::max(wide, T{1}), high = std::max(high, T{1});
    RegionAxis<T> down, across;
    if (!make_axis(top, high, down_, height_, &down) || !make_axis(left, wide, across_, width_, &across)) return false;
    // The reference tells which of these it refuses.
    if (given_ == 0 && wide * high < T{0}) return false;
    const int64_t count = down.count * across.count,
                  more = std::max<int64_t>(1, kTogether / std::max<int64_t>(count, 1));
    std::fill(out, out + channels_ * bins(), T{0});
    bool defined = true;
    // Samples of several bins, or some of one, which all channels share.
    for (int64_t bin = 0; bin < bins(); bin += more) {
      const int64_t together = std::min(more, bins() - bin);
      for (int64_t first = 0; first < count; first += kTogether) {
        run.check(worker);
        const int64_t some = std::min(kTogether, count - first);
        for (int64_t b = 0; b < together; ++b) {
          const int64_t row = (bin + b) / across_, column = (bin + b) % across_;
          for (int64_t i = 0; i < some; ++i) samples[b * some + i] = sample(down, row, across, column, first + i);
        }
        for (int64_t c = 0; c < channels_; ++c) {
          for (int64_t b = 0; b < together; ++b) {
            const T* from = x + c * plane();
            T& total = out[c * bins() + bin + b];
            total = maximum_ ? largest(samples + b * some, some, from, first == 0, total)
                             : added(samples + b * some, some, from, total);
            defined &= total == total;
          }
        }
      }
    }
    const auto by = static_cast<T>(std::max<int64_t>(count, 1));
    for (int64_t i = 0; !maximum_ && i < channels_ * bins(); ++i) out[i] /= by;
    return defined;
  }

  // Samples beside the image count as products of its first pixel and 0.
  Sample sample(const RegionAxis<T>& down, int64_t row, const RegionAxis<T>& across, int64_t column, int64_t i) const {
    int64_t y[2], x[2];
    T ly, lx;
    const bool near_y = down.at(row, i / across.count, y, y + 1, &ly);
    const bool near_x = across.at(column, i % across.count, x, x + 1, &lx);
    if (!(near_y && near_x)) return {};
    const T wy[2] = {T{1} - ly, ly}, wx[2] = {T{1} - lx, lx};
    Sample made;
    for (int k = 0; k < 4; ++k) {
      made.offsets[k] = static_cast<int32_t>(y[k / 2] * width_ + x[k % 2]);
      made.weights[k] = wy[k / 2] * wx[k % 2];
    }
    return made;
  }

  static T added(const Sample* samples, int64_t count, const T* plane, T total) {
    for (int64_t i = 0; i < count; ++i) {
      const Sample& s = samples[i];
      const T one = s.weights[0] * plane[s.offsets[0]], two = s.weights[1] * plane[s.offsets[1]];
      const T three = s.weights[2] * plane[s.offsets[2]], four = s.weights[3] * plane[s.offsets[3]];
      total = total + (((one + two) + three) + four);
    }
    return total;
  }

  static T largest(const Sample* samples, int64_t count, const T* plane, bool begins, T total) {
    for (int64_t i = 0; i < count; ++i) {
      const Sample& s = samples[i];
      T best = s.weights[0] * plane[s.offsets[0]];
      for (int k = 1; k < 4; ++k) {
        const T product = s.weights[k] * plane[s.offsets[k]];
        best = best < product ? product : best;
      }
      total = (begins && i == 0) || total < best ? best : total;
    }
    return total;
  }

  int64_t given_;
  bool half_pixel_, maximum_;
};

class RegionMaxima final : public RegionKernel<float> {
 public:
  explicit RegionMaxima(const Step& step) : RegionKernel(step, 5) {}

  void run(const Run& run) const override {
    const auto* regions = reinterpret_cast<const float*>(run.inputs[1]);
    for (int64_t r = 0; r < regions_; ++r) {
      const float* region = regions + 5 * r;
      if (!(region[0] > -1.0f && region[0] < static_cast<float>(images_))) throw Undefined();
      for (int i = 1; i < 5; ++i) {
        if (!(std::fabs(std::round(region[i] * scale_)) < kMost)) throw Undefined();
      }
    }
    for_rows(run, regions_ * channels_, plane(), [&](int64_t row, int worker) {
      run.check(worker);
      const float* region = regions + row / channels_ * 5;
      const int64_t place = static_cast<int64_t>(region[0]) * channels_ + row % channels_;
      maxima(region + 1, reinterpret_cast<const float*>(run.inputs[0]) + place * plane(),
             reinterpret_cast<float*>(run.outputs[0]) + row * bins());
      return true;
    });
  }

 private:
  static constexpr float kMost = 0x1p24f;

  int64_t pixel(float corner) const { return static_cast<int64_t>(std::round(corner * scale_)); }

  // Begin and end of a bin, within the image.
  static void bin_of(int64_t first, int64_t last, int64_t number, int64_t bins, int64_t size, int64_t* ends) {
    const float length = static_cast<float>(std::max<int64_t>(last - first + 1, 1)) / static_cast<float>(bins);
    const float begin = std::floor(static_cast<float>(number) * length);
    const float end = std::ceil(static_cast<float>(number + 1) * length);
    ends[0] = std::clamp<int64_t>(static_cast<int64_t>(begin) + first, 0, size);
    ends[1] = std::clamp<int64_t>(static_cast<int64_t>(end) + first, 0, size);
  }

  void maxima(const float* corners, const float* plane, float* out) const {
    const int64_t left = pixel(corners[0]), top = pixel(corners[1]), right = pixel(corners[2]),
                  bottom = pixel(corners[3]);
    for (int64_t i = 0; i < down_; ++i) {
      int64_t rows[2];
      bin_of(top, bottom, i, down_, height_, rows);
      for (int64_t j = 0; j < across_; ++j) {
        int64_t columns[2];
        bin_of(left, right, j, across_, width_, columns);
        float kept = std::numeric_limits<float>::lowest();
        for (int64_t y = rows[0]; y < rows[1]; ++y) {
          // The later one of equals, and whatever is no number, stays until a number follows.
          for (int64_t x = columns[0]; x < columns[1]; ++x) {
            const float value = plane[y * width_ + x];
            kept = kept > value ? kept : value;
          }
        }
        out[i * across_ + j] = rows[1] > rows[0] && columns[1] > columns[0] ? kept : 0.0f;
      }
    }
  }
};

// Boxes of bytes [N, H, W, C] by integer weights of four neighbours; boxes that the reference refuses have no result.
class ByteRegions final : public Kernel {
 public:
  explicit ByteRegions(const Step& step)
      : rescale_{step.rescale_rule(), {}},
        store_(storing(step)),
        scale_(static_cast<float>(step.real("spatial_scale"))) {
    const Operand &x = step.input(0), &boxes = step.input(1), &out = step.output();
    require(
        is_8bit(x.type) && out.type == x.type && boxes.type == Type::f32 && x.dense() && boxes.dense() && out.dense(),
        "no native kernel for these types");
    require(step.rule("corner_weights") == "binary32_times_255_even" && step.rule("accumulate") == "s32_wrap" &&
                rules::traits(rescale_.rule).point == 31,
            "no native rule for these slots");
    require(x.rank() == 4 && boxes.rank() == 2 && (boxes.shape[1] == 4 || boxes.shape[1] == 5),
            "the shapes do not fit");
    images_ = x.shape[0], height_ = x.shape[1], width_ = x.shape[2], channels_ = x.shape[3];
    boxes_ = boxes.shape[0], numbers_ = boxes.shape[1];
    down_ = step.integer("pooled_h", 1, 1 << 16), across_ = step.integer("pooled_w", 1, 1 << 16);
    given_ = step.integer("sampling_ratio", 0, kMostRegionSamples);
    const std::vector<int64_t> shape = {boxes_, down_, across_, channels_};
    require(out.shape == shape && x.elements > 0, "the shapes do not fit");
    input_scale_ = step.real("input_scale"), output_scale_ = step.real("output_scale");
    flip_ = flip_of(x.type);
    zero_point_ = step.integer("input_zero_point", -(1 << 16), 1 << 16);
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  void run(const Run& run) const override {
    std::atomic<bool> defined{true};
    run.pool.parallel(boxes_ * down_, [&](int64_t task, int worker) {
      run.check(worker);
      auto* sums = reinterpret_cast<uint32_t*>(run.scratch + worker * worker_bytes());
      const float* box = reinterpret_cast<const float*>(run.inputs[1]) + task / down_ * numbers_;
      if (!row(run, box, task % down_, sums, run.outputs[0] + task * across_ * channels_)) {
        defined.store(false, std::memory_order_relaxed);
      }
    });
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  int64_t worker_bytes() const { return round_up(channels_ * 4, 64); }

  bool make_axis(float start, float end, int64_t bins, int64_t size, RegionAxis<float>* axis) const {
    const float length = std::max(end - start, 1.0f), bin = length / static_cast<float>(bins);
    const float wanted = given_ != 0 ? static_cast<float>(given_) : std::ceil(bin);
    if (!std::isfinite(start) || !std::isfinite(length) || !(wanted >= 1.0f)) return false;
    if (!(wanted <= static_cast<float>(kMostRegionSamples))) return false;
    *axis = {start, bin, size, static_cast<int64_t>(wanted)};
    return std::isfinite(start + static_cast<float>(bins) * bin);
  }

  // The multiplier of a box's bins.
  bool encode(int64_t samples, rules::Multiplier* multiplier) const {
    const double real = input_scale_ / (output_scale_ * 255.0 * static_cast<double>(static_cast<float>(samples)));
    if (!(real > 0 && real < 1)) return false;
    int exponent = 0;
    const double significand = std::round(std::frexp(real, &exponent) * 2147483648.0);
    if (!(significand < 2147483648.0) || exponent > 0) return false;
    *multiplier = {exponent < -31 ? 0 : static_cast<int64_t>(significand), exponent < -31 ? 0 : exponent, 0.0};
    return true;
  }

  // The bins of one row of a box.
  bool row(const Run& run, const float* box, int64_t number, uint32_t* sums, uint8_t* out) const {
    int64_t image = 0;
    if (numbers_ == 5) {
      if (!(box[0] > -1.0f && box[0] < static_cast<float>(images_))) return false;
      image = static_cast<int64_t>(*box++);
    }
    for (int i = 0; i < 4; ++i) {
      if (!std::isfinite(box[i])) return false;
    }
    RegionAxis<float> down, across;
    Rescaling rescale = rescale_;
    if (!make_axis(box[1] * scale_, box[3] * scale_, down_, height_, &down) ||
        !make_axis(box[0] * scale_, box[2] * scale_, across_, width_, &across) ||
        !encode(down.count * across.count, &rescale.multiplier)) {
      return false;
    }
    const uint8_t* x = run.inputs[0] + image * height_ * width_ * channels_;
    const auto less = static_cast<uint32_t>(down.count * across.count * 255 * zero_point_);
    for (int64_t column = 0; column < across_; ++column, out += channels_) {
      std::fill_n(sums, channels_, uint32_t{0} - less);
      for (int64_t i = 0; i < down.count * across.count; ++i) add(x, down, number, across, column, i, sums);
      for (int64_t c = 0; c < channels_; ++c) {
        out[c] = static_cast<uint8_t>(store_(rescale(static_cast<int32_t>(sums[c]))) + flip_);
      }
    }
    return true;
  }

  // Four neighbours of a sample; those beside the image count as zeros.
  void add(const uint8_t* x, const RegionAxis<float>& down, int64_t row, const RegionAxis<float>& across,
           int64_t column, int64_t i, uint32_t* sums) const {
    int64_t y[2], at[2];
    float ly, lx;
    const bool near_y = down.at(row, i / across.count, y, y + 1, &ly);
    const bool near_x = across.at(column, i % across.count, at, at + 1, &lx);
    if (!(near_y && near_x)) return;
    const float wy[2] = {1.0f - ly, ly}, wx[2] = {1.0f - lx, lx};
    const int flip = flip_;
    for (int k = 0; k < 4; ++k) {
      const auto weight = static_cast<int32_t>(std::nearbyint(wy[k / 2] * wx[k % 2] * 255.0f));
      const uint8_t* pixel = x + (y[k / 2] * width_ + at[k % 2]) * channels_;
      for (int64_t c = 0; c < channels_; ++c) sums[c] += static_cast<uint32_t>(weight * (pixel[c] - flip));
    }
  }

  Rescaling rescale_;
  Storing store_;
  float scale_;
  double input_scale_ = 0, output_scale_ = 0;
  int64_t images_ = 0, height_ = 0, width_ = 0, channels_ = 0, boxes_ = 0, numbers_ = 4, down_ = 0, across_ = 0;
  int64_t given_ = 0, zero_point_ = 0;
  int flip_ = 0;
};

std::unique_ptr<Kernel> make_roi_align(const Step& step, const CoreSet&) { return std::make_unique<ByteRegions>(step); }

std::unique_ptr<Kernel> make_region_bins(const Step& step, const CoreSet&) {
  require_rounded_twice(step);
  if (step.input(0).type == Type::f64) return std::make_unique<RegionBins<double>>(step);
  return std::make_unique<RegionBins<float>>(step);
}

std::unique_ptr<Kernel> make_region_maxima(const Step& step, const CoreSet&) {
  return std::make_unique<RegionMaxima>(step);
}

BITTRUE_OPERATOR(region_bins, make_region_bins)
BITTRUE_OPERATOR(region_maxima, make_region_maxima)
BITTRUE_OPERATOR(roi_align, make_roi_align)

}  // namespace
}  // namespace bittrue
