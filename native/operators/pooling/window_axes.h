// Windows over images of one to three axes, channels first or last: where their taps lie, axis by axis.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "core/step.h"

namespace bittrue {

struct WindowAxis {
  int64_t size = 1, out = 1, taps = 1, stride = 1, dilation = 1, before = 0, after = 0;

  int64_t place(int64_t output, int64_t tap) const { return output * stride + tap * dilation - before; }
  // Taps [first, last) of an output lie at or behind position 0, and before position `end`.
  int64_t first(int64_t output) const {
    const int64_t start = place(output, 0);
    return start >= 0 ? 0 : std::min(taps, (-start + dilation - 1) / dilation);
  }
  int64_t last(int64_t output, int64_t end) const {
    const int64_t start = place(output, 0);
    return start >= end ? 0 : std::min(taps, (end - 1 - start) / dilation + 1);
  }
  int64_t inside(int64_t output) const { return std::max<int64_t>(0, last(output, size) - first(output)); }
};

// Depth, height and width, of size 1 where images have none; planes of pixels of `inner` elements.
struct WindowAxes {
  explicit WindowAxes(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    const int rank = in.rank();
    require(in.dense() && out.dense() && rank >= 3 && rank <= 5 && out.rank() == rank && out.elements > 0 &&
                in.elements > 0,
            "one to three axes are needed");
    const bool last = step.integer("channels_last", 0, 1) != 0;
    const char* names[][2] = {{"pad_front", "pad_back"}, {"pad_top", "pad_bottom"}, {"pad_left", "pad_right"}};
    for (int i = 0; i < rank - 2; ++i) {
      const int place = 3 - (rank - 2) + i;
      const auto at = static_cast<size_t>(last ? 1 + i : 2 + i);
      const std::string letter(1, "dhw"[place]);
      const auto number = [&](const std::string& key, int64_t least) {
        return step.integer(key.c_str(), least, int64_t{1} << 31);
      };
      axes[static_cast<size_t>(place)] = {in.shape[at],
                                          out.shape[at],
                                          number("filter_" + letter, 1),
                                          number("stride_" + letter, 1),
                                          number("dilation_" + letter, 1),
                                          number(names[place][0], -(int64_t{1} << 31)),
                                          number(names[place][1], -(int64_t{1} << 31))};
    }
    inner = last ? in.shape.back() : 1;
    planes = in.shape[0] * (last ? 1 : in.shape[1]);
    require(planes * inner == out.shape[0] * (last ? out.shape.back() : out.shape[1]), "the shapes do not fit");
  }

  const WindowAxis& d() const { return axes[0]; }
  const WindowAxis& h() const { return axes[1]; }
  const WindowAxis& w() const { return axes[2]; }
  // Lines of a plane of the result, and elements of one of the images.
  int64_t lines() const { return d().out * h().out; }
  int64_t plane() const { return d().size * h().size * w().size * inner; }
  int64_t taps() const { return d().taps * h().taps * w().taps; }

  // body(the first element of a pixel), for every tap inside of the window of (z, y, x), in order.
  template <class Element, class Body>
  void each_tap(const Element* image, int64_t z, int64_t y, int64_t x, const Body& body) const {
    for (int64_t i = d().first(z); i < d().last(z, d().size); ++i) {
      for (int64_t j = h().first(y); j < h().last(y, h().size); ++j) {
        const Element* line = image + (d().place(z, i) * h().size + h().place(y, j)) * w().size * inner;
        for (int64_t k = w().first(x); k < w().last(x, w().size); ++k) body(line + w().place(x, k) * inner);
      }
    }
  }

  std::array<WindowAxis, 3> axes;
  int64_t planes = 0, inner = 1;
};

}  // namespace bittrue
