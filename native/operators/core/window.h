// The geometry of a window that moves over an image [N, H, W, C], or over a volume [N, D, H, W, C]: read from a step and
// checked against its tensors.
#pragma once

#include <cstdint>

#include "core/step.h"

namespace bittrue {

struct Window {
  int64_t batch, in_h, in_w, in_c;
  int64_t filter_h, filter_w, stride_h, stride_w, dilation_h, dilation_w;
  int64_t pad_top, pad_left, pad_bottom, pad_right;
  int64_t out_h, out_w, out_c;
  int64_t in_d = 1, filter_d = 1, stride_d = 1, dilation_d = 1, pad_front = 0, pad_back = 0, out_d = 1;

  int64_t pixels() const { return batch * out_d * out_h * out_w; }
  int64_t taps() const { return filter_d * filter_h * filter_w; }
  bool padded() const {
    return pad_top != 0 || pad_left != 0 || pad_bottom != 0 || pad_right != 0 || pad_front != 0 || pad_back != 0;
  }
};

// NoKernel when the numbers contradict the shapes of input 0 and output 0, or for a volume unless `volumes` are meant.
[[gnu::cold]] Window read_window(const Step& step, bool volumes = false);

// The same for convolutions, whose windows fill the padded image: as many outputs as fit, not one more or less.
[[gnu::cold]] Window read_full_window(const Step& step, bool volumes = false);

// The rows of a fully-connected layer, weights[outputs, inputs], as the pixels of one line.
[[gnu::cold]] Window window_of_rows(const Step& step);

}  // namespace bittrue
