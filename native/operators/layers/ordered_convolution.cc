// Transposed convolutions over two or three spatial axes, and forward ones over three: binary32 sums in an order that the
// rule says, then the clamp.
#include "operators/layers/ordered_convolution.h"
#include "operators/layers/eights.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "core/share.h"
#include "operators/layers/columns.h"
#include "operators/layers/transposed.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

using Three = std::array<int64_t, 3>;

constexpr int64_t kMostOfGeometry = int64_t{1} << 30;
constexpr int64_t kPositions = 24;  // at a time: a multiple of every tile's height
constexpr int64_t kMostChains = 2;

class OrderedConvolution final : public Kernel {
 public:
  OrderedConvolution(const Step& step, const CoreSet& cores, bool transposed);

  void run(const Run& run) const override;
  int64_t scratch_bytes(int threads) const override { return shared_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 && !packed_.empty(); }
  std::string note() const override { return fused_ ? "fused binary32 sums in order" : "binary32 sums in order"; }

 private:
  struct Operands {
    const float* chains[kMostChains];  // every image's positions, [depths_[chain]] each
    const float *packed, *bias;
    float* out;
  };
  struct Worker {
    const float** rows;        // [taps][kPositions]
    int64_t* places;           // [taps][kPositions], -1 for outside of the image
    int64_t* lines;            // a number per line of taps
    float* sums[kMostChains];  // [kPositions][panel]
  };

  void read_geometry(const Step& step);
  // Where the input is that `tap` brings to output position `at` of `axis`; -1 for nowhere.
  int64_t source(int axis, int64_t at, int64_t tap) const {
    const int64_t moved = tap * dilation_[axis] - pad_[axis];
    if (!transposed_) {
      const int64_t found = at * stride_[axis] + moved;
      return found >= 0 && found < in_[axis] ? found : -1;
    }
    const int64_t found = at - moved;
    return found >= 0 && found % stride_[axis] == 0 && found / stride_[axis] < in_[axis] ? found / stride_[axis] : -1;
  }
  int64_t taps() const { return filter_[0] * filter_[1] * filter_[2]; }
  int64_t panel() const { return core_.lanes * core_.vectors; }
  int64_t width(int64_t first) const { return round_up(std::min(panel(), filters_ - first), core_.lanes); }
  int64_t packed_floats() const { return taps() * depth_ * round_up(filters_, core_.lanes); }
  int64_t packed_bytes() const { return packed_.empty() ? round_up(packed_floats() * 4, 64) : 0; }
  int64_t image_positions() const { return batch_ * in_[0] * in_[1] * in_[2]; }
  int64_t shared_bytes() const {
    return packed_bytes() + (chains_ > 1 ? round_up(image_positions() * depth_ * 4, 64) : 0);
  }
  int64_t sum_bytes() const { return round_up(kPositions * panel() * 4, 64); }
  int64_t place_bytes() const { return round_up(taps() * (2 * kPositions + 1) * 8, 64); }
  int64_t worker_bytes() const { return place_bytes() + chains_ * sum_bytes(); }

  // From +0 on sums meet the image in the order of memory: the last tap belongs to its first position.
  bool reversed() const { return transposed_ && !from_bias_; }
  void pack(const float* weights, float* to) const;
  Worker worker(uint8_t* scratch) const;
  bool line(const Operands& operands, const Worker& worker, int64_t index) const;
  int64_t find(const Worker& worker, const int64_t* lines, int64_t x, int64_t step) const;
  bool block(const Operands& operands, const Worker& worker, int64_t count, float* out, int64_t step) const;

  const RealMatmul& core_;
  bool transposed_, given_ = false;  // `given_`: whether an operand says the shape of the result
  bool fused_, eights_ = false, from_bias_, has_bias_;
  int axes_ = 3;
  int64_t batch_, depth_, filters_, work_, chains_ = 1;
  int64_t depths_[kMostChains] = {};  // terms of a tap in every chain
  Three in_{1, 1, 1}, out_{1, 1, 1}, filter_{1, 1, 1}, stride_{1, 1, 1}, dilation_{1, 1, 1}, pad_{};
  int64_t tap_step_ = 1, depth_step_ = 1, filter_step_ = 1;  // between weights
  std::vector<int64_t> across_;  // [positions of the last axis of the output][its taps], -1 for outside of the image
  std::vector<float> packed_;    // panels of [chains][taps in the order of sums][depths_[chain]][width]
  float low_, high_;
};

OrderedConvolution::OrderedConvolution(const Step& step, const CoreSet& cores, bool transposed)
    : core_(cores.real_matmul()), transposed_(transposed), has_bias_(step.has_input(2)), work_(step.work) {
  const Operand &in = step.input(0), &weights = step.input(1), &out = step.output();
  require(in.type == Type::f32 && weights.type == Type::f32 && out.type == Type::f32, "all numbers must be binary32");
  require(in.dense() && weights.dense() && out.dense(), "all sides must be dense");
  require(in.elements > 0 && out.elements > 0 && weights.elements > 0, "there is nothing to do");
  const std::string& rule = step.rule("sum_of_products");
  const bool in_chains = transposed && rule == "binary32_fused_in_chains";
  from_bias_ = in_chains || (transposed && rule == "binary32_fused_from_bias");
  const bool eights = !transposed && rule == "binary32_eights_then_fused";
  fused_ = from_bias_ || rule == "binary32_fused_in_order";
  require(fused_ || eights || rule == "binary32_in_order", "no native rule for sums");
  if (in_chains) chains_ = step.integer("chains", 1, kMostChains);
  require(step.integer("groups") == 1 && step.integer("channels_last") == 1, "channels in one group are last");
  read_geometry(step);
  // Fewer terms than eight are all joined, and eights all rounded.
  fused_ = fused_ || (eights && depth_ < kEight);
  eights_ = eights && depth_ > kEight && depth_ % kEight != 0;
  for (int64_t c = 0; c < chains_; ++c) depths_[c] = (depth_ - c + chains_ - 1) / chains_;
  if (has_bias_) {
    const Operand& bias = step.input(2);
    require(bias.type == Type::f32 && bias.dense() && bias.elements == filters_, "one bias per filter is needed");
  }
  require(transposed || step.rule("plain_range") == "type_limits", "no native rule for the range");
  low_ = static_cast<float>(step.real("low")), high_ = static_cast<float>(step.real("high"));
  if (transposed && step.has_input(kTransposedShape)) {
    const Operand& shape = step.input(kTransposedShape);
    require(shape.type == Type::s32 && shape.elements == in.rank() && shape.dense(),
            "a shape has a 32-bit dimension for every axis");
    given_ = true;
  }
  if (weights.constant == nullptr) return;
  std::vector<float> values(static_cast<size_t>(weights.elements));
  std::memcpy(values.data(), weights.constant, static_cast<size_t>(weights.bytes()));
  packed_.resize(static_cast<size_t>(packed_floats()));
  pack(values.data(), packed_.data());
}

// Axes that are not there are single positions.
void OrderedConvolution::read_geometry(const Step& step) {
  const Operand &in = step.input(0), &weights = step.input(1), &out = step.output();
  const int rank = in.rank(), axes = axes_ = rank - 2;
  require(rank == 5 || (rank == 4 && transposed_), "two or three spatial axes are needed");
  require(weights.rank() == rank && out.rank() == rank, "ranks differ");
  const std::string& layout = step.text("filter_layout");
  int64_t next = 1;
  int own = rank, first = -1;
  require(layout.size() == 3, "filters lie in an unknown order");
  for (size_t i = 3; i-- > 0;) {
    int64_t& apart = layout[i] == 'S' ? tap_step_ : layout[i] == 'I' ? depth_step_ : filter_step_;
    apart = next;
    own -= layout[i] == 'S' ? axes : 1;
    if (layout[i] == 'S') first = own;
    const int64_t size = layout[i] == 'I' ? in.shape[rank - 1] : out.shape[rank - 1];
    require(layout[i] == 'S' || (weights.shape[own] == size), "the filter's channels differ");
    for (int axis = own; layout[i] == 'S' && axis < own + axes; ++axis) next *= weights.shape[axis];
    if (layout[i] != 'S') next *= size;
  }
  require(first >= 0 && own == 0, "filters lie in an unknown order");
  for (int i = 0; i < axes; ++i) {
    const int axis = i + 3 - axes;
    in_[axis] = in.shape[i + 1], out_[axis] = out.shape[i + 1], filter_[axis] = weights.shape[first + i];
    require(in_[axis] < kMostOfGeometry && out_[axis] < kMostOfGeometry, "an axis is very long");
    const auto number = [&](const char* list, const char* const(&names)[3], int64_t least) {
      if (!transposed_) return step.integer(names[axis], least, kMostOfGeometry);
      const std::vector<int64_t>& all = step.list(list);
      require(static_cast<int>(all.size()) == axes, "every spatial axis needs a number");
      require(all[i] >= least && all[i] <= kMostOfGeometry, "a number of the geometry is out of range");
      return all[i];
    };
    stride_[axis] = number("strides", {"stride_d", "stride_h", "stride_w"}, 1);
    dilation_[axis] = number("dilations", {"dilation_d", "dilation_h", "dilation_w"}, 1);
    pad_[axis] = number("before", {"pad_front", "pad_top", "pad_left"}, 0);
  }
  require(taps() <= 1 << 20 && out_[2] * filter_[2] <= 1 << 24, "the filter is very large");
  for (int64_t x = 0; x < out_[2]; ++x) {
    for (int64_t tap = 0; tap < filter_[2]; ++tap) across_.push_back(source(2, x, tap));
  }
  batch_ = in.shape[0], depth_ = in.shape[rank - 1], filters_ = out.shape[rank - 1];
  require(out.shape[0] == batch_, "the output's shape differs");
}

void OrderedConvolution::pack(const float* weights, float* to) const {
  for (int64_t first = 0; first < filters_; first += panel()) {
    const int64_t wide = width(first), used = std::min(wide, filters_ - first);
    for (int64_t chain = 0; chain < chains_; ++chain) {
      for (int64_t i = 0; i < taps(); ++i) {
        const int64_t tap = reversed() ? taps() - 1 - i : i;
        for (int64_t k = chain; k < depth_; k += chains_, to += wide) {
          const float* from = weights + tap * tap_step_ + k * depth_step_ + first * filter_step_;
          for (int64_t o = 0; o < used; ++o) to[o] = from[o * filter_step_];
          std::fill(to + used, to + wide, 0.0f);
        }
      }
    }
  }
}

// Where position x finds the image by every tap, and as many neighbours, `step` apart, as see the same taps. `lines`: where
// the line of the image begins that every line of taps sees, or -1.
int64_t OrderedConvolution::find(const Worker& worker, const int64_t* lines, int64_t x, int64_t step) const {
  const int64_t wide = filter_[2], count_of_lines = filter_[0] * filter_[1];
  for (int64_t count = 0;; ++count, x += step) {
    if (count == kPositions || x >= out_[2]) return count;
    const int64_t* across = across_.data() + x * wide;
    int64_t* places = worker.places;
    for (int64_t l = 0; l < count_of_lines; ++l) {
      const int64_t begin = lines[reversed() ? count_of_lines - 1 - l : l];
      for (int64_t j = 0; j < wide; ++j, places += kPositions) {
        const int64_t w = begin < 0 ? -1 : across[reversed() ? wide - 1 - j : j];
        const int64_t place = w < 0 ? -1 : begin + w;
        if (count > 0 && (place < 0) != (places[0] < 0)) return count;
        places[count] = place;
      }
    }
  }
}

// One line of the output: all positions of its last spatial axis. Whether a result is NaN.
bool OrderedConvolution::line(const Operands& operands, const Worker& worker, int64_t index) const {
  float* out = operands.out + index * out_[2] * filters_;
  const int64_t n = index / out_[1] / out_[0], z = index / out_[1] % out_[0], y = index % out_[1];
  for (int64_t i = 0; i < filter_[0] * filter_[1]; ++i) {
    const int64_t d = source(0, z, i / filter_[1]), h = source(1, y, i % filter_[1]);
    worker.lines[i] = d < 0 || h < 0 ? -1 : ((n * in_[0] + d) * in_[1] + h) * in_[2];
  }
  // Positions that see the same taps lie a stride apart in transposed ones.
  const int64_t step = transposed_ ? stride_[2] : 1;
  bool odd = false;
  for (int64_t phase = 0; phase < std::min(step, out_[2]); ++phase) {
    for (int64_t x = phase, count = 0; x < out_[2]; x += count * step) {
      count = find(worker, worker.lines, x, step);
      odd |= block(operands, worker, count, out + x * filters_, step * filters_);
    }
  }
  return odd;
}

bool OrderedConvolution::block(const Operands& operands, const Worker& worker, int64_t count, float* out,
                               int64_t step) const {
  bool odd = false;
  RealRows rows;
  rows.rows = worker.rows;
  rows.capacity = kPositions, rows.count = count, rows.segments = taps();
  const float* packed = operands.packed;
  for (int64_t first = 0; first < filters_; first += panel()) {
    const int64_t wide = width(first), used = std::min(wide, filters_ - first);
    for (int64_t chain = 0; chain < chains_; ++chain) {
      if (first == 0 || chains_ > 1) {
        for (int64_t i = 0; i < taps(); ++i) {
          const int64_t* places = worker.places + i * kPositions;
          const float** at = worker.rows + i * kPositions;
          if (places[0] < 0) {
            std::fill_n(at, count, nullptr);
            continue;
          }
          for (int64_t r = 0; r < count; ++r) at[r] = operands.chains[chain] + places[r] * depths_[chain];
        }
      }
      float* sums = worker.sums[chain];
      std::fill_n(sums, count * wide, 0.0f);
      for (int64_t r = 0; r < count && chain == 0 && from_bias_ && operands.bias != nullptr; ++r) {
        std::copy_n(operands.bias + first, used, sums + r * wide);
      }
      rows.depth = depths_[chain], rows.sums = sums, rows.stride = wide;
      if (eights_) {
        const float* room[kPositions];
        bool begins = true;
        for (int64_t i = 0; i < taps(); ++i) {
          const float** at = worker.rows + i * kPositions;
          if (*at == nullptr) continue;
          add_eights(core_, at, count, depth_, packed + i * depth_ * wide, wide, begins, room, sums);
          begins = false;
        }
      } else if (rows.depth > 0) {
        (fused_ ? core_.run_fused : core_.run)(rows, packed, wide);
      }
      packed += taps() * depths_[chain] * wide;
    }
    for (int64_t r = 0; r < count; ++r) {
      float* sums = worker.sums[0] + r * wide;
      for (int64_t c = 0; c < used && chains_ > 1; ++c) sums[c] += worker.sums[1][r * wide + c];
      for (int64_t c = 0; c < used && !from_bias_ && operands.bias != nullptr; ++c) sums[c] += operands.bias[first + c];
      for (int64_t c = 0; c < used; ++c) {
        odd |= sums[c] != sums[c];
        out[r * step + first + c] = rules::clamp(sums[c], low_, high_);
      }
    }
  }
  return odd;
}

void OrderedConvolution::run(const Run& run) const {
  if (given_) {
    const auto* shape = reinterpret_cast<const int32_t*>(run.inputs[kTransposedShape]);
    bool planned = *shape++ == batch_;
    for (int axis = 3 - axes_; axis < 3; ++axis) planned &= *shape++ == out_[axis];
    if (!planned || *shape != filters_) throw Undefined();
  }
  Operands operands{};
  operands.chains[0] = reinterpret_cast<const float*>(run.inputs[0]);
  operands.packed = packed_.data();
  operands.bias = has_bias_ ? reinterpret_cast<const float*>(run.inputs[2]) : nullptr;
  operands.out = reinterpret_cast<float*>(run.outputs[0]);
  if (packed_.empty()) {
    pack(reinterpret_cast<const float*>(run.inputs[1]), reinterpret_cast<float*>(run.scratch));
    operands.packed = reinterpret_cast<const float*>(run.scratch);
  }
  if (chains_ > 1) {
    auto* to = reinterpret_cast<float*>(run.scratch + packed_bytes());
    const float* image = operands.chains[0];
    for (int64_t chain = 0; chain < chains_; ++chain) {
      operands.chains[chain] = to;
      for (int64_t p = 0; p < image_positions(); ++p) {
        for (int64_t k = chain; k < depth_; k += chains_) *to++ = image[p * depth_ + k];
      }
    }
  }
  std::atomic<bool> odd{false};
  share(run.pool, batch_ * out_[0] * out_[1], work_, [&](int64_t task, int index) {
    run.check(index);
    if (line(operands, worker(run.scratch + shared_bytes() + index * worker_bytes()), task)) odd = true;
  });
  // Signs and payloads of NaN are the reference's to tell.
  if (odd) throw Undefined();
}

OrderedConvolution::Worker OrderedConvolution::worker(uint8_t* scratch) const {
  Worker w{};
  w.rows = reinterpret_cast<const float**>(scratch);
  w.places = reinterpret_cast<int64_t*>(w.rows + taps() * kPositions);
  w.lines = w.places + taps() * kPositions;
  for (int64_t c = 0; c < chains_; ++c) {
    w.sums[c] = reinterpret_cast<float*>(scratch + place_bytes() + c * sum_bytes());
  }
  return w;
}

}  // namespace

std::unique_ptr<Kernel> make_ordered_convolution(const Step& step, const CoreSet& cores) {
  return std::make_unique<OrderedConvolution>(step, cores, false);
}

std::unique_ptr<Kernel> make_ordered_transposed(const Step& step, const CoreSet& cores) {
  return std::make_unique<OrderedConvolution>(step, cores, true);
}

}  // namespace bittrue
