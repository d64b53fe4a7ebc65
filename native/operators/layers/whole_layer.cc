#include "operators/layers/whole_layer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/share.h"
#include "operators/layers/real_layer.h"
#include "operators/layers/real_transposed.h"
#include "operators/layers/real_weights.h"

namespace bittrue {
namespace {

constexpr float kExactSums = 1 << 24;
constexpr int64_t kWholeBlock = 4096;  // elements

bool all_whole(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x) && std::nearbyint(x) == x; });
}

// A constant of integers or of binary32 numbers.
std::vector<float> as_reals(const Operand& operand) {
  require(operand.constant != nullptr, "a parameter is computed");
  if (operand.type == Type::f32) return real_constant(operand, operand.elements);
  std::vector<float> found;
  for (int64_t value : operand.integers()) found.push_back(static_cast<float>(value));
  return found;
}

// A dense operand of binary32 numbers.
Operand real_operand(std::vector<int64_t> shape, const float* constant = nullptr) {
  Operand found;
  found.type = Type::f32;
  found.shape = std::move(shape);
  found.elements = 1;
  for (int64_t size : found.shape) found.elements *= size;
  found.constant = constant;
  found.row_stride = found.row_bytes();
  return found;
}

// A layer of real numbers makes the sums of x - zx and w - zw, which are exact while none of them reaches 2^24. Where
// that does not follow from the largest |x - zx|, the same layer adds up magnitudes first.
class WholeLayer final : public Kernel {
 public:
  // `groups`: of the weights' first axis, whose filters lie along the second one if they are `turned`.
  WholeLayer(const Step& step, const CoreSet& cores, const std::vector<int64_t>& in_shape,
             const std::vector<int64_t>& filter_shape, const std::vector<int64_t>& out_shape, bool turned)
      : type_(step.input(0).type), out_type_(step.output().type) {
    const Operand &in = step.input(0), &filters = step.input(1), &out = step.output();
    require(type_ == Type::f32 || is_8bit(type_), "no native kernel for these types");
    require(out_type_ == Type::f32 || is_8bit(out_type_), "no native kernel for these types");
    require(in.dense() && out.dense() && filters.dense(), "both sides must be dense");
    require(in.elements > 0 && out.elements > 0 && filters.elements > 0, "there is nothing to do");
    in_elements_ = in.elements, out_elements_ = out.elements;
    const int64_t groups = turned ? step.integer("groups", 1, filter_shape[0]) : 1;
    channels_ = turned ? filter_shape[1] * groups : filter_shape[0];
    require(out_shape[1] == channels_ && filter_shape[0] % groups == 0, "the filter's shape differs");
    plane_ = out_elements_ / out_shape[0] / channels_;
    slices_ = step.rules.count("channel_parameters") != 0 && step.rule("channel_parameters") == "of_equal_slices";
    zero_ =
        static_cast<float>(step.integer("input_zero_point", INT32_MIN, INT32_MAX)) + static_cast<float>(flip_of(type_));
    std::vector<float> weights = centered_weights(step, filters, filter_shape, groups, turned);
    require(all_whole(weights), "weights are no integers");
    read_finish(step);
    inner_ = make_inner(step, cores, weights, in_shape, filter_shape, out_shape);
    for (float& weight : weights) weight = std::fabs(weight);
    std::vector<double> sums(static_cast<size_t>(channels_), 0.0);
    for_all_weights(filter_shape, groups, turned, [&](size_t i, int64_t channel) {
      sums[static_cast<size_t>(channel)] += static_cast<double>(weights[i]);
    });
    widest_ = *std::max_element(sums.begin(), sums.end());
    if (widest_ * 255 >= kExactSums) {
      magnitudes_ = make_inner(step, cores, weights, in_shape, filter_shape, out_shape);
    }
  }

  int64_t scratch_bytes(int threads) const override {
    const int64_t inner = magnitudes_ ? magnitudes_->scratch_bytes(threads) : 0;
    return values_bytes() + sums_bytes() + std::max(inner, inner_->scratch_bytes(threads));
  }
  bool packs(size_t input) const override { return input > 0; }
  std::string note() const override { return "integers in binary32: " + inner_->note(); }

  void run(const Run& run) const override {
    auto* values = reinterpret_cast<float*>(run.scratch);
    auto* sums = reinterpret_cast<float*>(run.scratch + values_bytes());
    uint8_t* scratch = run.scratch + values_bytes() + sums_bytes();
    const float largest = center(run, values);
    if (largest * widest_ >= kExactSums) {
      if (magnitudes_ == nullptr) throw Undefined();
      auto* last = values + in_elements_;
      for (float* x = values; x < last; ++x) *x = std::fabs(*x);
      times(run, *magnitudes_, values, sums, scratch);
      if (*std::max_element(sums, sums + out_elements_) >= kExactSums) throw Undefined();
      center(run, values);
    }
    times(run, *inner_, values, sums, scratch);
    run.pool.parallel((out_elements_ + kWholeBlock - 1) / kWholeBlock,
                      out_elements_ < kWholeBlock ? 1 : run.pool.threads(), [&](int64_t block, int) {
                        const int64_t first = block * kWholeBlock;
                        finish(sums, first, std::min(out_elements_, first + kWholeBlock), run.outputs[0]);
                      });
  }

 private:
  int64_t values_bytes() const { return round_up(in_elements_ * 4, 64); }
  int64_t sums_bytes() const { return round_up(out_elements_ * 4, 64); }

  template <class Visit>
  static void for_all_weights(const std::vector<int64_t>& shape, int64_t groups, bool turned, const Visit& visit) {
    int64_t taps = 1;
    for (size_t axis = 2; axis < shape.size(); ++axis) taps *= shape[axis];
    const int64_t depth = shape[0] / groups;
    size_t i = 0;
    for (int64_t row = 0; row < shape[0]; ++row) {
      for (int64_t column = 0; column < shape[1]; ++column) {
        const int64_t channel = turned ? row / depth * shape[1] + column : row;
        for (int64_t tap = 0; tap < taps; ++tap) visit(i++, channel);
      }
    }
  }

  std::vector<float> centered_weights(const Step& step, const Operand& filters, const std::vector<int64_t>& shape,
                                      int64_t groups, bool turned) const {
    std::vector<float> weights = as_reals(filters);
    const std::vector<float> points = per_channel(step, "weight_zero_point", "weight_zero_points");
    for_all_weights(shape, groups, turned, [&](size_t i, int64_t channel) {
      weights[i] -= points[points.size() == 1 ? 0 : static_cast<size_t>(channel)];
    });
    return weights;
  }

  // A parameter, or an array of one value per channel.
  std::vector<float> per_channel(const Step& step, const char* one, const char* several) const {
    if (!step.has_array(several)) return {static_cast<float>(step.integer(one, INT32_MIN, INT32_MAX))};
    const Array& array = step.array(several);
    require(array.count == channels_, "one value per channel is needed");
    std::vector<float> found;
    for (int64_t i = 0; i < array.count; ++i) found.push_back(static_cast<float>(array.integer(i)));
    return found;
  }

  void read_finish(const Step& step) {
    points_ = per_channel(step, "output_zero_point", "output_zero_points");
    low_ = static_cast<float>(step.real("low")), high_ = static_cast<float>(step.real("high"));
    if (step.has_input(2)) {
      bias_ = as_reals(step.input(2));
      require(static_cast<int64_t>(bias_.size()) == channels_, "one bias per filter is needed");
    }
    const bool bytes = is_8bit(out_type_);
    if (step.rules.count("rescale") == 0 && !bytes) return;
    require(all_whole(bias_), "a bias is no integer");
    for (float one : bias_) require(std::fabs(one) < 2130706432.0f, "a bias is very large");
    if (bytes) {
      const float lowest = out_type_ == Type::s8 ? -128 : 0;
      require(low_ >= lowest && high_ <= lowest + 255, "the limits are wider than the type");
    }
    if (step.rules.count("rescale") == 0) return;
    rescales_ = true;
    rule_ = step.rescale_rule();
    require(!rules::is_real(rule_) && !rules::traits(rule_).has(rules::kAddend), "no native kernel for this rule");
    const bool floating = rules::traits(rule_).point == 0;
    require(floating == step.has_array("factor"), "the multiplier does not suit its rule");
    const Array& first = step.array(floating ? "factor" : "multiplier");
    require(first.count == 1 || first.count == channels_, "one multiplier, or one per channel, is needed");
    for (int64_t i = 0; i < first.count; ++i) {
      rules::Multiplier m{};
      if (floating) {
        m.factor = first.real(i);
      } else {
        const Array& exponents = step.array("exponent");
        require(exponents.count == first.count, "one exponent per multiplier is needed");
        m.multiplier = first.integer(i);
        m.exponent = static_cast<int>(std::max<int64_t>(-1024, std::min<int64_t>(1024, exponents.integer(i))));
      }
      require(rules::takes(rule_, m), "the multiplier is out of range");
      multipliers_.push_back(m);
    }
  }

  static std::unique_ptr<Kernel> make_inner(const Step& step, const CoreSet& cores, const std::vector<float>& weights,
                                            const std::vector<int64_t>& in_shape,
                                            const std::vector<int64_t>& filter_shape,
                                            const std::vector<int64_t>& out_shape) {
    const Operand in = real_operand(in_shape), filters = real_operand(filter_shape, weights.data());
    const Operand out = real_operand(out_shape);
    Step inner;
    inner.name = step.name;
    inner.rules = {{"real_product", "binary32_fused_blocks"}};
    inner.integers = step.integers;
    inner.texts = {{"arithmetic", "real"}};
    inner.inputs = {&in, &filters};
    inner.outputs = {&out};
    // The order of exact sums is free.
    inner.integers["block"] = {1}, inner.integers["split"] = {1 << 24}, inner.integers["packed"] = {1},
    inner.integers["turned"] = {0};
    std::unique_ptr<Kernel> made =
        step.name == "conv_transpose" ? make_real_transposed(inner, cores) : make_real_convolution(inner, cores);
    require(made != nullptr, "no native kernel for these windows");
    return made;
  }

  // x - zx; the largest magnitude. Undefined for numbers that are not whole.
  float center(const Run& run, float* to) const {
    std::atomic<bool> whole{true};
    std::atomic<float> most{0.0f};
    run.pool.parallel((in_elements_ + kWholeBlock - 1) / kWholeBlock,
                      in_elements_ < kWholeBlock ? 1 : run.pool.threads(), [&](int64_t block, int) {
                        const int64_t first = block * kWholeBlock, last = std::min(in_elements_, first + kWholeBlock);
                        float largest = 0;
                        bool right = true;
                        if (type_ == Type::f32) {
                          const auto* from = reinterpret_cast<const float*>(run.inputs[0]);
                          for (int64_t i = first; i < last; ++i) {
                            to[i] = from[i] - zero_;
                            right &= std::nearbyint(to[i]) - to[i] == 0.0f;
                            largest = std::max(largest, std::fabs(to[i]));
                          }
                        } else {
                          for (int64_t i = first; i < last; ++i) {
                            to[i] = static_cast<float>(run.inputs[0][i]) - zero_;
                            largest = std::max(largest, std::fabs(to[i]));
                          }
                        }
                        if (!right) whole.store(false, std::memory_order_relaxed);
                        float seen = most.load();
                        while (seen < largest && !most.compare_exchange_weak(seen, largest)) {
                        }
                      });
    if (!whole.load()) throw Undefined();
    return most.load();
  }

  static void times(const Run& run, const Kernel& inner, float* values, float* sums, uint8_t* scratch) {
    uint8_t* inputs[] = {reinterpret_cast<uint8_t*>(values), nullptr};
    uint8_t* outputs[] = {reinterpret_cast<uint8_t*>(sums)};
    inner.run(Run{inputs, outputs, scratch, run.pool});
  }

  void finish(const float* sums, int64_t first, int64_t last, uint8_t* out) const {
    const int64_t slice = out_elements_ / channels_;
    const int flip = flip_of(out_type_);
    for (int64_t i = first; i < last; ++i) {
      const auto channel = static_cast<size_t>(i / plane_ % channels_);
      const size_t place = slices_ ? static_cast<size_t>(i / slice) : channel;
      float acc = sums[i];
      if (!bias_.empty()) acc += bias_[channel];
      if (rescales_) {
        const rules::Multiplier& m = multipliers_[multipliers_.size() == 1 ? 0 : place];
        acc = static_cast<float>(rules::apply(rule_, static_cast<int64_t>(acc), m));
      }
      const float point = points_[points_.size() == 1 ? 0 : place];
      if (point != 0 || points_.size() > 1) acc += point;
      acc = acc > high_ ? high_ : acc;
      acc = acc < low_ ? low_ : acc;
      if (out_type_ == Type::f32) {
        std::memcpy(out + 4 * i, &acc, 4);
      } else {
        out[i] = static_cast<uint8_t>(static_cast<int>(acc) + flip);
      }
    }
  }

  Type type_, out_type_;
  int64_t in_elements_ = 0, out_elements_ = 0, channels_ = 1, plane_ = 1;
  bool slices_ = false, rescales_ = false;
  float zero_ = 0, low_ = 0, high_ = 0;
  double widest_ = 0;  // the largest sum of a filter's magnitudes
  std::vector<float> bias_, points_;
  rules::RescaleRule rule_{};
  std::vector<rules::Multiplier> multipliers_;
  std::unique_ptr<Kernel> inner_, magnitudes_;
};

// As a convolution with one position.
std::unique_ptr<Kernel> make_whole_product(const Step& step, const CoreSet& cores) {
  const Operand &in = step.input(0), &filters = step.input(1), &out = step.output();
  require(filters.rank() == 2 && filters.elements > 0, "weights have two axes");
  const int64_t channels = filters.shape[0], depth = filters.shape[1], rows = in.elements / depth;
  require(in.elements == rows * depth && out.elements == rows * channels, "the shapes do not fit");
  Step product = step;
  for (const char* axis : {"h", "w"}) {
    for (const char* name : {"out_", "filter_", "stride_", "dilation_"})
      product.integers[std::string(name) + axis] = {1};
  }
  product.integers["groups"] = {1};
  product.integers["pad_top"] = product.integers["pad_left"] = product.integers["channels_last"] = {0};
  return std::make_unique<WholeLayer>(product, cores, std::vector<int64_t>{rows, depth, 1},
                                      std::vector<int64_t>{channels, depth, 1}, std::vector<int64_t>{rows, channels, 1},
                                      false);
}

}  // namespace

std::unique_ptr<Kernel> make_whole_layer(const Step& step, const CoreSet& cores) {
  if (step.name == "fully_connected") return make_whole_product(step, cores);
  for (const Operand* operand : {&step.input(0), &step.input(1), &step.output()}) {
    require(operand->rank() >= 3, "images and filters have spatial axes");
  }
  return std::make_unique<WholeLayer>(step, cores, step.input(0).shape, step.input(1).shape, step.output().shape,
                                      step.name == "conv_transpose");
}

}  // namespace bittrue
