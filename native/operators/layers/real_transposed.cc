#include "operators/layers/real_transposed.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/layers/fused_product.h"
#include "operators/layers/single_rows.h"

namespace bittrue {
namespace {

constexpr int kAxes = 3;

struct TransposedAxis {
  int64_t in = 1, out = 1, taps = 1, stride = 1, dilation = 1, before = 0;

  // Where input 0 goes by a tap, and which inputs go inside of the result.
  int64_t shift(int64_t tap) const { return tap * dilation - before; }
  int64_t first(int64_t tap) const { return std::min(in, shift(tap) >= 0 ? 0 : (stride - 1 - shift(tap)) / stride); }
  int64_t last(int64_t tap) const {
    const int64_t room = out - shift(tap);
    return room <= 0 ? 0 : std::min(in, (room - 1) / stride + 1);
  }
};

int64_t positions_of(const Operand& image) {
  require(image.rank() >= 3 && image.rank() <= 2 + kAxes && image.elements > 0, "one to three spatial axes are needed");
  return image.elements / (image.shape[0] * image.shape[1]);
}

// Whether constant filters are packed.
bool is_packed(const Step& step) { return step.integer("packed", 0, 1) != 0; }

// All filters times all channels make a plane for every tap of every channel of the result; planes are added tap by tap
// to the positions that they meet.
class RealTransposed final : public Kernel {
 public:
  RealTransposed(const Step& step, const CoreSet& cores);

  int64_t scratch_bytes(int threads) const override { return shared_bytes() + threads * worker_bytes(); }
  bool tells_nan() const override { return true; }
  bool packs(size_t input) const override { return input == 1 && packed_; }
  std::string note() const override { return "fused multiply-adds in blocks, then planes of taps"; }
  void run(const Run& run) const override;

 private:
  // A plane per row; positions that are rows and meet packed filters; one position, whose products are added up in lanes,
  // or in fours where filters are not packed.
  enum class Order : uint8_t { planes, positions, lanes, fours };

  static Order order_of(const Step& step, const CoreSet& cores) {
    const int64_t positions = positions_of(step.input(0));
    if (positions == 1) return is_packed(step) ? Order::lanes : Order::fours;
    return is_packed(step) && positions < cores.real_matmul().lanes ? Order::positions : Order::planes;
  }

  int64_t planes() const { return channels_ * taps_; }
  // Floats of one group's filters as they are kept or made while running.
  int64_t filter_floats() const { return order_ == Order::positions ? product_.matrix_numbers() : planes() * depth_; }
  int64_t filter_bytes() const {
    return packed_ || order_ == Order::fours ? 0 : round_up(groups_ * filter_floats() * 4, 64);
  }
  // What the image is made into: panels, or rows of positions.
  int64_t image_floats() const {
    return order_ == Order::planes ? product_.matrix_numbers() : order_ == Order::positions ? positions_ * depth_ : 0;
  }
  int64_t shared_bytes() const { return filter_bytes() + round_up(groups_ * image_floats() * 4, 64); }
  int64_t most_planes() const { return order_ == Order::planes ? together_ * taps_ : planes(); }
  int64_t worker_bytes() const { return product_.worker_bytes() + round_up(most_planes() * positions_ * 4, 64); }

  void arrange(const float* filters, float* to) const;
  void prepare(const Run& run, const float* image, float* to) const;
  bool make(const float* image, const float* own, const float* filters, int64_t first, int64_t count, float* planes,
            uint8_t* scratch) const;
  void spread(const float* planes, int64_t plane_step, int64_t position_step, float* out) const;

  TransposedAxis axes_[kAxes];
  int64_t batch_, groups_, depth_, channels_;  // channels of one group
  int64_t taps_ = 1, positions_ = 1, results_ = 1, together_ = 1;
  bool packed_, added_;
  Order order_;
  FusedProduct product_;
  std::vector<float> kept_;
};

// In the order of members: what the product needs is known before it is made.
TransposedAxis read_axis(const Step& step, int axis) {
  const Operand &in = step.input(0), &filter = step.input(1), &out = step.output();
  const int rank = in.rank() - 2, own = axis - (kAxes - rank);
  TransposedAxis found;
  if (own < 0) return found;
  const auto number = [&](const char* key, int64_t least, int64_t most) {
    const std::vector<int64_t>& list = step.list(key);
    require(static_cast<int>(list.size()) == rank, "the geometry has other axes");
    require(list[own] >= least && list[own] <= most, "a number of the geometry is out of range");
    return list[own];
  };
  constexpr int64_t kMost = int64_t{1} << 24;
  found.in = in.shape[own + 2], found.out = out.shape[own + 2], found.taps = filter.shape[own + 2];
  found.stride = number("strides", 1, kMost), found.dilation = number("dilations", 1, kMost);
  found.before = number("before", -kMost, kMost);
  require(std::max({found.in, found.out, found.taps}) <= kMost, "the operands are very large");
  return found;
}

int64_t planes_of(const Step& step) {
  const Operand& filter = step.input(1);
  require(filter.rank() == step.input(0).rank() && filter.elements > 0, "images and filters have as many axes");
  return filter.elements / filter.shape[0];
}

int64_t group_depth(const Step& step) {
  const int64_t groups = step.integer("groups", 1, int64_t{1} << 24);
  require(step.input(0).shape[1] % groups == 0, "groups do not divide the channels");
  return step.input(0).shape[1] / groups;
}

RealTransposed::RealTransposed(const Step& step, const CoreSet& cores)
    : batch_(step.input(0).shape[0]),
      groups_(step.integer("groups", 1, int64_t{1} << 24)),
      depth_(group_depth(step)),
      channels_(step.output().shape[1] / groups_),
      packed_(is_packed(step)),
      added_(step.has_input(2)),
      order_(order_of(step, cores)),
      product_(
          cores.real_matmul(), depth_, order_ == Order::positions ? planes_of(step) : positions_of(step.input(0)), 1.0f,
          packed_ ? FusedProduct::block_of(depth_, positions_of(step.input(0)), false) : FusedProduct::kTurnedBlock) {
  const Operand &in = step.input(0), &filter = step.input(1), &out = step.output();
  require(step.integer("channels_last", 0, 1) == 0 && !step.has_input(9),
          "channels are last, or the shape is computed");
  require(in.type == Type::f32 && filter.type == Type::f32 && out.type == Type::f32 && in.dense() && filter.dense() &&
              out.dense() && out.rank() == in.rank() && out.elements > 0,
          "no native kernel for these types");
  for (int i = 0; i < kAxes; ++i) {
    axes_[i] = read_axis(step, i);
    taps_ *= axes_[i].taps, positions_ *= axes_[i].in, results_ *= axes_[i].out;
  }
  require(out.shape[0] == batch_ && out.shape[1] == channels_ * groups_ && filter.shape[0] == groups_ * depth_ &&
              filter.shape[1] == channels_,
          "the shapes do not fit");
  if (added_) {
    const Operand& bias = step.input(2);
    require(bias.type == Type::f32 && bias.dense() && bias.elements == groups_ * channels_,
            "one bias per channel is needed");
  }
  together_ = std::min(channels_, std::max<int64_t>(1, FusedProduct::kRows / taps_));
  if (!packed_) return;
  require(filter.constant != nullptr, "filters are computed");
  std::vector<float> values(static_cast<size_t>(filter.elements));
  std::memcpy(values.data(), filter.constant, values.size() * 4);
  kept_.resize(static_cast<size_t>(groups_ * filter_floats()));
  arrange(values.data(), kept_.data());
}

// [groups * depth][planes] as rows [planes][depth] of each group, or as panels.
void RealTransposed::arrange(const float* filters, float* to) const {
  for (int64_t g = 0; g < groups_; ++g, filters += depth_ * planes(), to += filter_floats()) {
    if (order_ == Order::positions) {
      product_.pack_all(filters, false, to);
      continue;
    }
    for (int64_t k = 0; k < depth_; ++k) {
      for (int64_t m = 0; m < planes(); ++m) to[m * depth_ + k] = filters[k * planes() + m];
    }
  }
}

// One image's channels [groups * depth][positions].
void RealTransposed::prepare(const Run& run, const float* image, float* to) const {
  if (order_ == Order::positions) {
    for (int64_t g = 0; g < groups_; ++g) {
      for (int64_t p = 0; p < positions_; ++p) {
        for (int64_t k = 0; k < depth_; ++k) *to++ = image[(g * depth_ + k) * positions_ + p];
      }
    }
    return;
  }
  const int64_t panels = product_.panels();
  run.pool.parallel(
      groups_ * panels, groups_ * depth_ * positions_ < 50000 ? 1 : run.pool.threads(), [&](int64_t task, int) {
        const int64_t g = task / panels;
        product_.pack(image + g * depth_ * positions_, false, task % panels, to + g * product_.matrix_numbers());
      });
}

// The planes of `count` channels of a group. False where a number is not finite.
bool RealTransposed::make(const float* image, const float* own, const float* filters, int64_t first, int64_t count,
                          float* planes, uint8_t* scratch) const {
  const int64_t rows = count * taps_;
  if (order_ == Order::planes) {
    return product_.multiply_all(filters + first * taps_ * depth_, rows, own, Addend(), planes, positions_, scratch);
  }
  if (order_ == Order::positions)
    return product_.multiply_all(own, positions_, filters, Addend(), planes, rows, scratch);
  if (order_ == Order::lanes) {
    sums_of_lanes_of_eight(filters, image, depth_, rows, planes);
    for (int64_t m = 0; m < rows; ++m) planes[m] += 0.0f;
  } else {
    std::fill_n(planes, rows, 0.0f);
    add_fours(image, filters, rows, depth_, rows, planes);
  }
  return all_finite(planes, rows);
}

// to[x * step] += from[x * from_step] for x in [low, high)
void add_every(const float* from, int64_t from_step, int64_t low, int64_t high, int64_t step, float* to) {
  if (step == 1 && from_step == 1) {
    for (int64_t x = low; x < high; ++x) to[x] += from[x];
  } else if (from_step == 1) {
    for (int64_t x = low; x < high; ++x) to[x * step] += from[x];
  } else {
    for (int64_t x = low; x < high; ++x) to[x * step] += from[x * from_step];
  }
}

// One channel's planes: element p of tap t is at t * plane_step + p * position_step.
void RealTransposed::spread(const float* planes, int64_t plane_step, int64_t position_step, float* out) const {
  const TransposedAxis &deep = axes_[0], &tall = axes_[1], &wide = axes_[2];
  for (int64_t a = 0; a < deep.taps; ++a) {
    for (int64_t b = 0; b < tall.taps; ++b) {
      const int64_t top = tall.first(b), bottom = tall.last(b);
      for (int64_t c = 0; c < wide.taps; ++c, planes += plane_step) {
        // With a stride of 2, two taps fill lines without gaps; none of them meets the other's numbers.
        const bool pair = wide.stride == 2 && wide.dilation == 1 && position_step == 1 && c + 1 < wide.taps;
        const int64_t low = pair ? std::max(wide.first(c), wide.first(c + 1)) : wide.first(c);
        const int64_t high = pair ? std::max(low, std::min(wide.last(c), wide.last(c + 1))) : wide.last(c);
        for (int64_t z = deep.first(a); z < deep.last(a); ++z) {
          for (int64_t y = top; y < bottom; ++y) {
            const int64_t line = (z * deep.stride + deep.shift(a)) * tall.out + y * tall.stride + tall.shift(b);
            const float* from = planes + (z * tall.in + y) * wide.in * position_step;
            float* to = out + line * wide.out + wide.shift(c);
            if (!pair) {
              add_every(from, position_step, low, high, wide.stride, to);
              continue;
            }
            const float* second = from + plane_step;
            add_every(from, 1, wide.first(c), std::min(low, wide.last(c)), 2, to);
            add_every(second, 1, wide.first(c + 1), std::min(low, wide.last(c + 1)), 2, to + 1);
            for (int64_t x = low; x < high; ++x) {
              to[2 * x] += from[x];
              to[2 * x + 1] += second[x];
            }
            add_every(from, 1, high, wide.last(c), 2, to);
            add_every(second, 1, high, wide.last(c + 1), 2, to + 1);
          }
        }
        if (pair) ++c, planes += plane_step;
      }
    }
  }
}

void RealTransposed::run(const Run& run) const {
  const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
  const auto* bias = added_ ? reinterpret_cast<const float*>(run.inputs[2]) : nullptr;
  auto* out = reinterpret_cast<float*>(run.outputs[0]);
  const float* filters = kept_.data();
  if (order_ == Order::fours) {
    filters = reinterpret_cast<const float*>(run.inputs[1]);
  } else if (!packed_) {
    arrange(reinterpret_cast<const float*>(run.inputs[1]), reinterpret_cast<float*>(run.scratch));
    filters = reinterpret_cast<const float*>(run.scratch);
  }
  auto* images = reinterpret_cast<float*>(run.scratch + filter_bytes());
  const bool whole = order_ != Order::planes;
  const int64_t each = whole ? channels_ : together_, chunks = (channels_ + each - 1) / each;
  const int64_t work = groups_ * planes() * depth_ * positions_;
  std::atomic<bool> finite{true};
  for (int64_t n = 0; n < batch_; ++n) {
    const float* image = in + n * groups_ * depth_ * positions_;
    if (image_floats() > 0) prepare(run, image, images);
    run.pool.parallel(groups_ * chunks, work < 50000 ? 1 : run.pool.threads(), [&](int64_t task, int worker) {
      const int64_t g = task / chunks, first = task % chunks * each, count = std::min(each, channels_ - first);
      uint8_t* scratch = run.scratch + shared_bytes() + worker * worker_bytes();
      auto* made = reinterpret_cast<float*>(scratch + product_.worker_bytes());
      bool right = make(image + g * depth_ * positions_, images + g * image_floats(), filters + g * filter_floats(),
                        first, count, made, scratch);
      for (int64_t o = 0; o < count; ++o) {
        float* to = out + ((n * groups_ + g) * channels_ + first + o) * results_;
        std::fill_n(to, results_, 0.0f);
        if (order_ == Order::positions) {
          spread(made + o * taps_, 1, planes(), to);
        } else {
          spread(made + o * taps_ * positions_, positions_, 1, to);
        }
        right &=
            bias == nullptr ? all_finite(to, results_) : add_to_all(to, bias[g * channels_ + first + o], results_, to);
      }
      if (!right) finite.store(false, std::memory_order_relaxed);
    });
  }
  // Signs and payloads of NaN are the reference's to tell.
  if (!finite.load(std::memory_order_relaxed)) throw Undefined();
}

}  // namespace

std::unique_ptr<Kernel> make_real_transposed(const Step& step, const CoreSet& cores) {
  return std::make_unique<RealTransposed>(step, cores);
}

}  // namespace bittrue
