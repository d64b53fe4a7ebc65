#include "operators/core/window.h"

namespace bittrue {

Window read_window(const Step& step, bool volumes) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const Operand& in = step.input(0);
  const Operand& out = step.output();
  const int rank = in.rank();
  require((rank == 4 || (volumes && rank == 5)) && out.rank() == rank, "images have four axes");
  Window w{};
  w.batch = in.shape[0], w.in_h = in.shape[rank - 3], w.in_w = in.shape[rank - 2], w.in_c = in.shape[rank - 1];
  if (rank == 5) {
    w.in_d = in.shape[1], w.filter_d = step.integer("filter_d", 1, kMost),
    w.stride_d = step.integer("stride_d", 1, kMost);
    w.dilation_d = step.integer("dilation_d", 1, kMost), w.pad_front = step.integer("pad_front", 0, kMost);
    w.pad_back = step.integer("pad_back", 0, kMost), w.out_d = step.integer("out_d", out.shape[1], out.shape[1]);
  }
  w.filter_h = step.integer("filter_h", 1, kMost), w.filter_w = step.integer("filter_w", 1, kMost);
  w.stride_h = step.integer("stride_h", 1, kMost), w.stride_w = step.integer("stride_w", 1, kMost);
  w.dilation_h = step.integer("dilation_h", 1, kMost), w.dilation_w = step.integer("dilation_w", 1, kMost);
  w.pad_top = step.integer("pad_top", 0, kMost), w.pad_left = step.integer("pad_left", 0, kMost);
  w.pad_bottom = step.integer("pad_bottom", 0, kMost), w.pad_right = step.integer("pad_right", 0, kMost);
  w.out_h = step.integer("out_h", 0, kMost), w.out_w = step.integer("out_w", 0, kMost);
  w.out_c = out.shape[rank - 1];
  require(out.shape[0] == w.batch && out.shape[rank - 3] == w.out_h && out.shape[rank - 2] == w.out_w,
          "the output's shape differs");
  return w;
}

Window read_full_window(const Step& step, bool volumes) {
  const Window w = read_window(step, volumes);
  const auto fits = [](int64_t dimension, int64_t filter, int64_t stride, int64_t dilation, int64_t out) {
    const int64_t room = dimension - (filter - 1) * dilation - 1;
    return filter <= (int64_t{1} << 16) && room >= 0 && room / stride + 1 == out;
  };
  require(fits(w.in_h + w.pad_top + w.pad_bottom, w.filter_h, w.stride_h, w.dilation_h, w.out_h) &&
              fits(w.in_w + w.pad_left + w.pad_right, w.filter_w, w.stride_w, w.dilation_w, w.out_w) &&
              fits(w.in_d + w.pad_front + w.pad_back, w.filter_d, w.stride_d, w.dilation_d, w.out_d),
          "the windows do not fill the padded image");
  return w;
}

Window window_of_rows(const Step& step) {
  const Operand &in = step.input(0), &weights = step.input(1);
  require(weights.rank() == 2 && weights.shape[1] > 0 && weights.shape[0] > 0, "weights have two axes");
  Window window{};
  window.in_c = weights.shape[1], window.out_c = weights.shape[0];
  window.batch = window.in_h = window.out_h = window.filter_h = window.filter_w = 1;
  window.stride_h = window.stride_w = window.dilation_h = window.dilation_w = 1;
  window.in_w = window.out_w = in.elements / window.in_c;
  require(window.in_w * window.in_c == in.elements && window.in_w * window.out_c == step.output().elements,
          "the shapes do not fit");
  return window;
}

}  // namespace bittrue
