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
      : h_(h), w_(w), rows_(h, lines), columns_(w, width), pitch_(least_pitch(w, columns_, width)) {
    for (int64_t i = 0; i < h.taps; ++i) {
      for (int64_t j = 0; j < w.taps; ++j) {
        const int64_t plane = rows_.slot_of[i] * columns_.slots() + columns_.slot_of[j];
        offsets_.push_back(plane * plane_floats() + rows_.place_of[i] * pitch_ + columns_.place_of[j]);
      }
    }
  }

  int64_t floats() const { return rows_.slots() * columns_.slots() * plane_floats(); }
  int64_t pitch() const { return pitch_; }
  int64_t offset(int64_t tap) const { return offsets_[tap]; }

  // The image, for outputs from line y0 and column x0 on, and zeros around it unless they are there already.
  void fill(const float* plane, int64_t y0, int64_t x0, float* to, bool around = true) const {
    const int64_t plane_floats = this->plane_floats();
    const size_t slots = columns_.remainders.size();
    for (const int64_t down : rows_.remainders) {
      const InsideFrame y(h_, y0, down, rows_.size);
      const float* line = plane + y.from * w_.dimension;
      for (size_t i = 0; i < slots; ++i) {
        const InsideFrame x(w_, x0, columns_.remainders[i], columns_.size);
        const bool paired = w_.stride == 2 && i + 1 < slots;
        const InsideFrame next(w_, x0, columns_.remainders[paired ? i + 1 : i], columns_.size);
        for (float* part : {to, to + plane_floats}) {
          if (!around) break;
          std::fill_n(part, y.low * pitch_, 0.0f);
          std::fill(part + y.high * pitch_, part + plane_floats, 0.0f);
          if (!paired) break;
        }
        for (int64_t r = y.low; r < y.high; ++r) {
          const float* from = line + (r - y.low) * h_.stride * w_.dimension;
          float* one = to + r * pitch_;
          if (paired) {
            take_pairs(from, x, next, one, one + plane_floats);
            if (around) fill_sides(next, one + plane_floats);
          } else {
            take_every(from + x.from, w_.stride, x.high - x.low, one + x.low);
          }
          if (around) fill_sides(x, one);
        }
        to += plane_floats;
        if (paired) to += plane_floats, ++i;
      }
    }
  }

 private:
  // Zeros behind a whole line are those before the next one.
  static int64_t least_pitch(const SpatialAxis& w, const FrameAxis& columns, int64_t width) {
    if (width < w.out) return columns.size;
    int64_t least = width;
    for (const int64_t remainder : columns.remainders) {
      const InsideFrame x(w, 0, remainder, columns.size);
      least = std::max({least, x.high, columns.size - x.low});
    }
    return least;
  }
  // The last line has zeros of its own.
  int64_t plane_floats() const { return rows_.size * pitch_ + columns_.size - pitch_; }

  void fill_sides(const InsideFrame& x, float* line) const {
    std::fill(line, line + x.low, 0.0f);
    std::fill(line + x.high, line + pitch_, 0.0f);
  }

  // Both remainders of a line by 2.
  static void take_pairs(const float* line, const InsideFrame& x, const InsideFrame& next, float* one, float* two) {
    const bool ahead = x.from > next.from;
    const InsideFrame &first = ahead ? next : x, &second = ahead ? x : next;
    float *evens = (ahead ? two : one) + first.low, *odds = (ahead ? one : two) + second.low;
    const int64_t count =
        second.from == first.from + 1 ? std::min(first.high - first.low, second.high - second.low) : 0;
    split_pairs(line + first.from, count, evens, odds);
    take_every(line + first.from + 2 * count, 2, first.high - first.low - count, evens + count);
    take_every(line + second.from + 2 * count, 2, second.high - second.low - count, odds + count);
  }

  static void split_pairs(const float* from, int64_t count, float* evens, float* odds) {
    if (count < 4) return split_fours(from, count, evens, odds);
    split_fours(from, count / 4 * 4, evens, odds);
    // The last four once more, with those before them.
    const int64_t n = count - 4;
    if (count % 4 != 0) split_fours(from + 2 * n, 4, evens + n, odds + n);
  }
  // Out of line, where the compiler knows that nothing overlaps.
  __attribute__((noinline)) static void split_fours(const float* from, int64_t count, float* __restrict evens,
                                                    float* __restrict odds) {
    for (int64_t n = 0; n < count; ++n) evens[n] = from[2 * n], odds[n] = from[2 * n + 1];
  }

  SpatialAxis h_, w_;
  FrameAxis rows_, columns_;
  int64_t pitch_;
  std::vector<int64_t> offsets_;
};

}  // namespace bittrue
