// Planes of an image in a frame of zeros, where every tap of a filter is the same plane elsewhere: at place p of the frame
// with outputs y * pitch + x. With strides, a frame has a plane for each remainder of a place.
#pragma once

#include <algorithm>
#include <vector>

#include "operators/layers/real_convolution.h"

namespace bittrue {

// One axis of a frame: `size` numbers for each remainder that taps ask for, and where tap t's are.
struct FrameAxis {
  FrameAxis(const SpatialAxis& axis, int64_t outputs) {
    std::vector<int64_t> slots(static_cast<size_t>(std::min(axis.stride, axis.taps * axis.dilation)), -1);
    int64_t reach = 0;
    for (int64_t t = 0; t < axis.taps; ++t) {
      int64_t& slot = slots[t * axis.dilation % axis.stride];
      if (slot < 0) {
        slot = static_cast<int64_t>(remainders.size());
        remainders.push_back(t * axis.dilation % axis.stride);
      }
      slot_of.push_back(slot);
      place_of.push_back(t * axis.dilation / axis.stride);
      reach = std::max(reach, place_of.back());
    }
    size = outputs + reach;
  }
  int64_t slots() const { return static_cast<int64_t>(remainders.size()); }

  int64_t size = 0;
  std::vector<int64_t> remainders, slot_of, place_of;
};

// Places [low, high) of a frame, which begins at output `first`, that lie inside of the image.
struct InsideFrame {
  InsideFrame(const SpatialAxis& axis, int64_t first, int64_t remainder, int64_t size) {
    const int64_t start = first * axis.stride + remainder - axis.before, stride = axis.stride;
    low = start >= 0 ? 0 : std::min(size, (-start + stride - 1) / stride);
    high = start >= axis.dimension ? low : std::max(low, std::min(size, (axis.dimension - 1 - start) / stride + 1));
    from = start + low * stride;
  }
  int64_t low, high, from;  // `from`: where place `low` lies in the image
};

// A frame for `lines` times `width` outputs.
class ImageFrame {
 public:
  ImageFrame(const SpatialAxis& h, const SpatialAxis& w, int64_t lines, int64_t width)
      : h_(h), w_(w), rows_(h, lines), columns_(w, width) {
    for (int64_t i = 0; i < h.taps; ++i) {
      for (int64_t j = 0; j < w.taps; ++j) {
        const int64_t plane = rows_.slot_of[i] * columns_.slots() + columns_.slot_of[j];
        offsets_.push_back((plane * rows_.size + rows_.place_of[i]) * columns_.size + columns_.place_of[j]);
      }
    }
  }

  int64_t floats() const { return rows_.slots() * columns_.slots() * rows_.size * columns_.size; }
  int64_t pitch() const { return columns_.size; }
  int64_t offset(int64_t tap) const { return offsets_[tap]; }

  // The image, for outputs from line y0 and column x0 on, and zeros around it.
  void fill(const float* plane, int64_t y0, int64_t x0, float* to) const {
    const int64_t pitch = columns_.size;
    for (const int64_t down : rows_.remainders) {
      const InsideFrame y(h_, y0, down, rows_.size);
      for (const int64_t right : columns_.remainders) {
        const InsideFrame x(w_, x0, right, pitch);
        const float* from = plane + y.from * w_.dimension + x.from;
        std::fill_n(to, y.low * pitch, 0.0f);
        for (int64_t r = y.low; r < y.high; ++r, from += h_.stride * w_.dimension) {
          float* line = to + r * pitch;
          std::fill(line, line + x.low, 0.0f);
          take_every(from, w_.stride, x.high - x.low, line + x.low);
          std::fill(line + x.high, line + pitch, 0.0f);
        }
        std::fill(to + y.high * pitch, to + rows_.size * pitch, 0.0f);
        to += rows_.size * pitch;
      }
    }
  }

 private:
  SpatialAxis h_, w_;
  FrameAxis rows_, columns_;
  std::vector<int64_t> offsets_;
};

}  // namespace bittrue
