// conv of real numbers with channels first, by the rules binary32_fused_blocks and binary32_fused_windows_of_7.
#pragma once

#include <cstring>
#include <memory>

#include "core/kernel.h"
#include "isa/cores.h"
#include "operators/layers/real_limits.h"
#include "operators/layers/spatial_axis.h"

namespace bittrue {

// A step of that rule as its kernels read it.
struct RealConvolutionForm {
  static constexpr size_t kAddend = 9;  // the operand that sums begin with

  // Sums of `split` terms, added up; a single row in fours; a single column in 8 lanes; down the columns of windows.
  enum class Order { blocks, fours, lanes, columns };

  RealConvolutionForm() = default;
  // NoKernel for what does not fit together.
  explicit RealConvolutionForm(const Step& step);

  int64_t taps() const { return d.taps * h.taps * w.taps; }
  int64_t plane() const { return h.dimension * w.dimension; }
  int64_t channel() const { return d.dimension * plane(); }  // numbers of one
  // The plane that tap `tap` of depth finds for output plane `z` of a channel; null outside of the image.
  const float* plane_of(const float* from, int64_t z, int64_t tap) const {
    const int64_t at = z * d.stride + tap * d.dilation - d.before;
    return at >= 0 && at < d.dimension ? from + at * plane() : nullptr;
  }
  // Whether depth is an axis of its own.
  bool is_volume() const { return d.dimension > 1 || d.out > 1 || d.taps > 1; }
  const float* begin(const Run& run) const { return begins ? at(run, kAddend) : nullptr; }
  const float* bias(const Run& run) const { return added ? at(run, 2) : nullptr; }
  static const float* at(const Run& run, size_t input) { return reinterpret_cast<const float*>(run.inputs[input]); }

  SpatialAxis d, h, w;
  int64_t batch = 0, groups = 1, depth = 0, filters = 0;  // channels and filters of one group
  int64_t positions = 0, block = 1, terms = 0, split = 0;
  Order order = Order::blocks;
  bool added = false, begins = false;
  RealLimits limits;
};

// A filter [C][taps] as [C / block][taps][block], the last block filled with zeros.
void arrange_filter(const RealConvolutionForm& form, const float* from, float* to);

// to[n] = from[n * stride]
inline void take_every(const float* from, int64_t stride, int64_t count, float* to) {
  if (stride == 2) {
    for (int64_t n = 0; n < count; ++n) to[n] = from[n * 2];
    return;
  }
  if (stride != 1) {
    for (int64_t n = 0; n < count; ++n) to[n] = from[n * stride];
    return;
  }
  int64_t n = 0;
  for (; n + 16 <= count; n += 16) std::memcpy(to + n, from + n, 64);
  for (; n + 4 <= count; n += 4) std::memcpy(to + n, from + n, 16);
  if (n < count && count >= 4) {
    // The last four once more, with those before them.
    std::memcpy(to + count - 4, from + count - 4, 16);
    return;
  }
  for (; n < count; ++n) to[n] = from[n];
}

// Filters of one channel, a few of them per channel: null for other convolutions.
std::unique_ptr<Kernel> make_plane_convolution(const Step& step, const CoreSet& cores, const RealConvolutionForm& form);

// Windows of single channels, taps in the order of memory, many channels side by side: null for what has no such frames.
// `filters` are those of products where they are constants.
std::unique_ptr<Kernel> make_lane_windows(const CoreSet& cores, const RealConvolutionForm& form,
                                          RealLaneRows::Join join, const float* filters = nullptr);

// Windows of 7 x 7 by the rule binary32_fused_windows_of_7; NoKernel for others.
std::unique_ptr<Kernel> make_window_columns(const CoreSet& cores, const RealConvolutionForm& form);

// Sums over windows of planes, tap by tap in the order of memory, without a filter: null for what has no frames.
std::unique_ptr<Kernel> make_plane_sums(const CoreSet& cores, const RealConvolutionForm& form);

// Sums of blocks of channels with every lane a filter: null for other sums, and for few filters.
std::unique_ptr<Kernel> make_filter_lanes(const Step& step, const CoreSet& cores, const RealConvolutionForm& form);

// Images of so few positions that they are the rows of the product: null for other convolutions.
std::unique_ptr<Kernel> make_few_positions(const Step& step, const CoreSet& cores, const RealConvolutionForm& form);

}  // namespace bittrue
