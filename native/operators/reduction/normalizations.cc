// layer_normalization, group_normalization, batch_normalization, batch_training and mean_variance_normalization of real
// numbers, by the slot `real_normalization`.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "operators/core/registry.h"
#include "operators/elementwise/operand_pairs.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

template <class T = float>
const T* reals(const Run& run, size_t input) {
  return reinterpret_cast<const T*>(run.inputs[input]);
}
template <class T = float>
T* results(const Run& run, size_t output) {
  return reinterpret_cast<T*>(run.outputs[output]);
}

class LayerNormalization final : public Kernel {
 public:
  LayerNormalization(const Step& step, const CoreSet& cores) : rows_core_(cores.normalize_rows()) {
    require_reals(step);
    require(step.rule("real_normalization") == "binary32_lanes", "no native rule for this slot");
    const Operand& in = step.input(0);
    const int64_t axis = step.integer("axis", 0, in.rank() - 1);
    for (int64_t i = axis; i < in.rank(); ++i) spec_.count *= in.shape[i];
    require(spec_.count > 0 && step.output().elements == in.elements, "there are no rows");
    rows_ = in.elements / spec_.count;
    spec_.centred = step.integer("centred", 0, 1) == 1;
    spec_.epsilon = static_cast<float>(step.real("epsilon"));
    spec_.order = order(step.text("kind"));
    for (const size_t input : {size_t{1}, size_t{2}}) {
      if (input == 2 && !step.has_input(input)) continue;
      const Operand& part = step.input(input);
      // One row, whatever dimensions of 1 stand before it.
      require(part.type == Type::f32 && part.elements == spec_.count && part.rank() <= in.rank() && part.dense(),
              "no row of its own");
      (input == 1 ? scale_ : bias_) = input;
    }
    for (size_t i = 1; i < step.outputs.size(); ++i) {
      const Operand& one = step.output(i);
      require(i < 3 && one.type == Type::f32 && one.elements == rows_ && one.dense(), "no number per row");
      outputs_ = i;
    }
  }

  void run(const Run& run) const override {
    NormalizeSpec spec = spec_;
    spec.scale = reals(run, scale_);
    spec.bias = bias_ == 0 ? nullptr : reals(run, bias_);
    // Not with NaN among the parameters: which of several is kept depends on the order inside of vectors.
    for (const float* part : {spec.scale, spec.bias}) {
      if (part == nullptr) continue;
      bool odd = false;
      for (int64_t i = 0; i < spec.count; ++i) odd |= part[i] != part[i];
      if (odd) throw Undefined();
    }
    for_stretches(run, rows_, spec.count, kRows, [&](int64_t first, int64_t last, int) {
      const auto part = [&](size_t output) { return output <= outputs_ ? results(run, output) + first : nullptr; };
      const int64_t at = first * spec.count;
      return rows_core_(spec, reals(run, 0) + at, last - first, results(run, 0) + at, part(1), part(2));
    });
  }

 private:
  static constexpr int64_t kRows = 16;  // that the core works on at a time, at most

  NormalizeOrder order(const std::string& kind) const {
    if (kind == "embedded") return NormalizeOrder::one_by_one;
    const bool half = kind == "half";
    require(half || kind == "layer" || kind == "summed", "no native form");
    const bool short_rows = spec_.count < (spec_.centred && !half ? 8 : 16);
    if (kind == "summed" || short_rows) return NormalizeOrder::running;
    return half ? NormalizeOrder::fused_lanes : NormalizeOrder::lanes;
  }

  NormalizeRows rows_core_;
  NormalizeSpec spec_ = {NormalizeOrder::lanes, true, 0, 1, nullptr, nullptr};
  int64_t rows_ = 0;
  size_t scale_ = 1, bias_ = 0, outputs_ = 0;
};

// Of binary64 numbers, by running means; what the other outputs have is rounded.
class WideLayerNormalization final : public Kernel {
 public:
  explicit WideLayerNormalization(const Step& step) {
    require_reals<double>(step);
    const std::string& kind = step.text("kind");
    require(step.rule("real_normalization") == "binary64_running" && (kind == "layer" || kind == "summed"),
            "no native rule for this slot");
    const Operand& in = step.input(0);
    for (int64_t i = step.integer("axis", 0, in.rank() - 1); i < in.rank(); ++i) count_ *= in.shape[i];
    require(count_ > 0 && step.output().elements == in.elements, "there are no rows");
    rows_ = in.elements / count_;
    centred_ = step.integer("centred", 0, 1) == 1;
    epsilon_ = static_cast<double>(static_cast<float>(step.real("epsilon")));
    biased_ = step.has_input(2);
    for (size_t input = 1; input < (biased_ ? 3u : 2u); ++input) {
      const Operand& part = step.input(input);
      require(part.type == Type::f64 && part.elements == count_ && part.rank() <= in.rank() && part.dense(),
              "no row of its own");
    }
    for (size_t i = 1; i < step.outputs.size(); ++i) {
      const Operand& one = step.output(i);
      require(i < 3 && one.type == Type::f32 && one.elements == rows_ && one.dense(), "no number per row");
      outputs_ = i;
    }
  }

  void run(const Run& run) const override {
    for_stretches(run, rows_, count_, kTogether, [&](int64_t first, int64_t last, int) {
      bool finite = true;
      for (int64_t row = first; row < last; row += kTogether) {
        finite = some(run, row, std::min(kTogether, last - row)) && finite;
      }
      return finite;
    });
  }

 private:
  static constexpr int64_t kTogether = 4;  // rows whose sums do not wait for one another

  // False where a result may be no number.
  bool some(const Run& run, int64_t row, int64_t rows) const {
    const auto number = [&](size_t input) { return reinterpret_cast<const double*>(run.inputs[input]); };
    const double* x[kTogether];
    double mean[kTogether] = {}, squares[kTogether] = {};
    for (int64_t r = 0; r < kTogether; ++r) x[r] = number(0) + (row + std::min(r, rows - 1)) * count_;
    for (int64_t i = 0; i < count_; ++i) {
      for (int64_t r = 0; r < kTogether; ++r) {
        const double apart = x[r][i] - mean[r];
        if (centred_) mean[r] += apart / static_cast<double>(static_cast<float>(i + 1));
        squares[r] += apart * (x[r][i] - mean[r]);
      }
    }
    bool finite = true;
    for (int64_t r = 0; r < rows; ++r) {
      auto* out = reinterpret_cast<double*>(run.outputs[0]) + (row + r) * count_;
      const double deviation = std::sqrt(squares[r] / static_cast<double>(static_cast<float>(count_)) + epsilon_);
      for (int64_t i = 0; i < count_; ++i) {
        const double normal = (x[r][i] - mean[r]) / deviation * number(1)[i];
        out[i] = biased_ ? normal + number(2)[i] : normal;
      }
      const double inverse = 1.0 / deviation;
      if (outputs_ > 0) results(run, 1)[row + r] = static_cast<float>(mean[r]);
      if (outputs_ > 1) results(run, 2)[row + r] = static_cast<float>(inverse);
      finite = finite && inverse - inverse == 0.0 && mean[r] - mean[r] == 0.0;
    }
    return finite;
  }

  int64_t count_ = 1, rows_ = 0;
  double epsilon_ = 0;
  bool centred_ = false, biased_ = false;
  size_t outputs_ = 0;
};

// Scales and biases are broadcast over the rows: sums in binary64 in order, by the mean of squares; or, of `branches`, squares
// in order, times the inverse deviation and the scale.
template <class T>
class SpreadLayerNormalization final : public Kernel {
 public:
  explicit SpreadLayerNormalization(const Step& step) : branches_(step.text("kind") == "branches") {
    require_reals<T>(step);
    constexpr bool kWide = sizeof(T) == 8;
    require(step.rule("real_normalization") == (kWide ? "binary64_running" : "binary32_lanes") &&
                (step.text("kind") == "broadcast" || (branches_ && !kWide)),
            "no native rule for this slot");
    const Operand& in = step.input(0);
    const int64_t axis = step.integer("axis", 0, in.rank() - 1);
    for (int64_t i = axis; i < in.rank(); ++i) count_ *= in.shape[i];
    require(in.elements > 0 && step.output().elements == in.elements, "there are no rows");
    rows_ = in.elements / count_;
    centred_ = step.integer("centred", 0, 1) == 1;
    require(!branches_ || (!centred_ && !step.has_input(2)), "no native form");
    epsilon_ = static_cast<float>(step.real("epsilon"));
    for (size_t input = 1; input < 3; ++input) {
      if (input == 1 || step.has_input(input)) parts_.emplace_back(in, step.input(input), axis);
    }
    for (size_t i = 1; i < step.outputs.size(); ++i) {
      const Operand& one = step.output(i);
      require(i < 3 && one.type == Type::f32 && one.elements == rows_ && one.dense(), "no number per row");
      outputs_ = i;
    }
  }

  void run(const Run& run) const override {
    for_rows(run, rows_, count_, [&](int64_t row, int) {
      const T *in = reals<T>(run, 0) + row * count_, *scale = reals<T>(run, 1);
      T* out = results<T>(run, 0) + row * count_;
      float mean = 0.0f, inverse = 0.0f;
      if (branches_) {
        T squares = in[0] * in[0];
        for (int64_t i = 1; i < count_; ++i) squares = squares + in[i] * in[i];
        const T by = T{1} / std::sqrt(squares / static_cast<T>(count_) + static_cast<T>(epsilon_));
        inverse = static_cast<float>(by);
        for (int64_t i = 0; i < count_; ++i) out[i] = in[i] * by * parts_[0].of(scale, row, i);
      } else {
        const double middle = centred_ ? sum(in, false) / static_cast<double>(count_) : 0.0;
        const double squares = sum(in, true) / static_cast<double>(count_), epsilon = static_cast<double>(epsilon_);
        const double deviation = std::sqrt(centred_ ? squares - middle * middle + epsilon : squares + epsilon);
        mean = static_cast<float>(middle), inverse = static_cast<float>(1.0 / deviation);
        const T* bias = parts_.size() > 1 ? reals<T>(run, 2) : nullptr;
        for (int64_t i = 0; i < count_; ++i) {
          double number = (static_cast<double>(in[i]) - middle) / deviation;
          number = number * static_cast<double>(parts_[0].of(scale, row, i));
          if (centred_) number = number + (bias == nullptr ? 0.0 : static_cast<double>(parts_[1].of(bias, row, i)));
          out[i] = static_cast<T>(number);
        }
      }
      if (outputs_ > 0) results(run, 1)[row] = mean;
      if (outputs_ > 1) results(run, 2)[row] = inverse;
      bool numbers = !std::isnan(mean) && !std::isnan(inverse);
      for (int64_t i = 0; i < count_; ++i) numbers = numbers && !std::isnan(out[i]);
      return numbers;
    });
  }

 private:
  // Where an operand's numbers of rows and of their places lie.
  struct Part {
    Part(const Operand& whole, const Operand& part, int64_t axis) {
      require(part.type == whole.type && part.dense() && part.rank() <= whole.rank(), "an operand has another form");
      int64_t stride = 1;
      std::vector<int64_t> strides(whole.shape.size(), 0);
      for (int i = part.rank() - 1, j = whole.rank() - 1; i >= 0; --i, --j) {
        require(part.shape[i] == 1 || part.shape[i] == whole.shape[j], "an operand has another form");
        strides[j] = part.shape[i] == 1 ? 0 : stride;
        stride *= part.shape[i];
      }
      rows = places = {0};
      for (int i = 0; i < whole.rank(); ++i) {
        std::vector<int64_t>& table = i < axis ? rows : places;
        std::vector<int64_t> longer;
        for (const int64_t place : table) {
          for (int64_t k = 0; k < whole.shape[i]; ++k) longer.push_back(place + k * strides[i]);
        }
        table = std::move(longer);
      }
    }
    T of(const T* numbers, int64_t row, int64_t place) const { return numbers[rows[row] + places[place]]; }

    std::vector<int64_t> rows, places;
  };

  double sum(const T* in, bool squared) const {
    const auto number = [&](int64_t i) {
      const auto x = static_cast<double>(in[i]);
      return squared ? x * x : x;
    };
    double total = number(0);
    for (int64_t i = 1; i < count_; ++i) total = total + number(i);
    return total;
  }

  bool branches_, centred_ = false;
  int64_t count_ = 1, rows_ = 0;
  float epsilon_ = 0;
  size_t outputs_ = 0;
  std::vector<Part> parts_;
};

// Rows are groups of channels, or one channel each (`instance`); scale and bias have a number per channel or per group.
class GroupNormalization final : public Kernel {
 public:
  explicit GroupNormalization(const Step& step) : instance_(step.text("kind") == "instance") {
    require_reals(step);
    require(step.rule("real_normalization") == "binary32_lanes" && (instance_ || step.text("kind") == "group"),
            "no native rule for this slot");
    const Operand& in = step.input(0);
    require(in.rank() >= 2 && in.elements > 0 && step.output().elements == in.elements, "there are no rows");
    groups_ = step.integer("groups", 1, in.shape[1]);
    require(in.shape[1] % groups_ == 0, "channels do not fall into groups");
    channels_ = in.shape[1] / groups_;
    rows_ = in.shape[0] * groups_;
    inner_ = in.elements / rows_ / channels_;
    for (const size_t input : {size_t{1}, size_t{2}}) {
      const Operand& part = step.input(input);
      require(part.type == Type::f32 && part.dense() && (part.elements == groups_ || part.elements == in.shape[1]),
              "no number per channel or group");
      per_group_[input - 1] = part.elements == groups_;
    }
    epsilon_ = static_cast<float>(step.real("epsilon"));
  }

  void run(const Run& run) const override {
    const int64_t count = channels_ * inner_;
    const auto divisor = static_cast<float>(count);
    for_rows(run, rows_, count, [&](int64_t row, int) {
      const float* in = reals(run, 0) + row * count;
      float* out = results(run, 0) + row * count;
      const auto number = [&](size_t input, int64_t channel) {
        const int64_t group = row % groups_;
        return reals(run, input)[per_group_[input - 1] ? group : group * channels_ + channel];
      };
      const float mean = packet_sum([in](int64_t i) { return in[i]; }, count, row * count) / divisor;
      if (!instance_) {
        const float squares = packet_sum([in](int64_t i) { return in[i] * in[i]; }, count, row * count) / divisor;
        const float deviation = std::sqrt(squares - mean * mean + epsilon_);
        for (int64_t c = 0; c < channels_; ++c, in += inner_, out += inner_) {
          const float by = number(1, c), add = number(2, c);
          for (int64_t i = 0; i < inner_; ++i) out[i] = (in[i] - mean) / deviation * by + add;
        }
        return is_number(deviation) && is_number(mean) && deviation > 0;
      }
      const auto square = [in, mean](int64_t i) { return (in[i] - mean) * (in[i] - mean); };
      const float inverse = 1.0f / std::sqrt(packet_sum(square, count, 0) / divisor + epsilon_);
      for (int64_t c = 0; c < channels_; ++c, in += inner_, out += inner_) {
        const float factor = inverse * number(1, c), shift = number(2, c) - mean * factor;
        for (int64_t i = 0; i < inner_; ++i) out[i] = in[i] * factor + shift;
      }
      return is_number(inverse) && is_number(mean);
    });
  }

 private:
  static bool is_number(float x) { return x - x == 0.0f; }

  bool instance_, per_group_[2] = {};
  int64_t groups_ = 1, channels_ = 1, rows_ = 0, inner_ = 1;
  float epsilon_ = 0;
};

// Rules by which numbers become lines: x factor + shift, of either width.
template <class T>
void require_lines(const Step& step, bool difference) {
  constexpr bool kWide = std::is_same_v<T, double>;
  const char* rule = difference ? "binary32_difference" : kWide ? "binary64_running" : "binary32_lanes";
  require(step.rule("real_normalization") == rule && !(difference && kWide), "no native rule for this slot");
}

// [batch, channels, inner], and numbers per channel in the inputs behind.
template <class T>
struct Planes {
  explicit Planes(const Step& step) {
    require_reals<T>(step);
    const Operand& in = step.input(0);
    require(in.rank() >= 1 && in.elements > 0 && step.output().elements == in.elements, "there are no numbers");
    channels = in.rank() > 1 ? in.shape[1] : 1;
    count = in.rank() > 1 ? in.shape[0] * channels : 1;
    inner = in.elements / count;
    for (size_t input = 1; input < 5; ++input) {
      const Operand& part = step.input(input);
      require(part.type == in.type && part.elements == channels && part.dense(), "no number per channel");
    }
    epsilon = static_cast<T>(static_cast<float>(step.real("epsilon")));
  }

  int64_t channels = 1, count = 0, inner = 1;
  T epsilon = 0;
};

// By given means and variances: a factor and an addend per channel.
template <class T>
class GivenNormalization final : public Kernel {
 public:
  explicit GivenNormalization(const Step& step)
      : p_(step), line_(step.rule("real_normalization") != "binary32_difference") {
    require_lines<T>(step, !line_);
  }

  void run(const Run& run) const override {
    for_rows(run, p_.count, p_.inner, [&](int64_t plane, int) {
      const int64_t c = plane % p_.channels;
      const T* in = reals<T>(run, 0) + plane * p_.inner;
      const T deviation = std::sqrt(reals<T>(run, 4)[c] + p_.epsilon);
      const T scale = reals<T>(run, 1)[c], bias = reals<T>(run, 2)[c], mean = reals<T>(run, 3)[c];
      T* out = results<T>(run, 0) + plane * p_.inner;
      // Not with NaN among the parameters: which of several is kept depends on the order inside of vectors.
      if (line_) {
        const T factor = T{1} / deviation * scale, shift = bias - mean * factor;
        if (std::isnan(factor + shift)) return false;
        for (int64_t i = 0; i < p_.inner; ++i) out[i] = in[i] * factor + shift;
      } else {
        const T factor = scale / deviation;
        if (std::isnan(factor + mean + bias)) return false;
        for (int64_t i = 0; i < p_.inner; ++i) out[i] = factor * (in[i] - mean) + bias;
      }
      return true;
    });
  }

 private:
  Planes<T> p_;
  bool line_;
};

// By the batch's own means and variances, which the given ones take in.
template <class T>
class OwnNormalization final : public Kernel {
 public:
  explicit OwnNormalization(const Step& step)
      : p_(step), keep_(static_cast<T>(static_cast<float>(step.real("momentum")))) {
    require_lines<T>(step, false);
    const Operand& in = step.input(0);
    require(in.rank() >= 2 && step.outputs.size() <= 5, "there are no channels");
    outputs_ = step.outputs.size();
    for (size_t output = 1; output < outputs_; ++output) {
      const Operand& part = step.output(output);
      require(part.type == in.type && part.elements == p_.channels && part.dense(), "no number per channel");
    }
  }

  void run(const Run& run) const override {
    const int64_t images = p_.count / p_.channels;
    const auto count = static_cast<T>(images * p_.inner);
    for_rows(run, p_.channels, images * p_.inner, [&](int64_t c, int) {
      const auto plane = [&](int64_t image) { return (image * p_.channels + c) * p_.inner; };
      const T* x = reals<T>(run, 0);
      T mean = 0, spread = 0;
      for (int64_t image = 0; image < images; ++image) {
        const T* in = x + plane(image);
        mean += packet_sum([in](int64_t i) { return in[i]; }, p_.inner, plane(image));
      }
      mean = mean / count;
      for (int64_t image = 0; image < images; ++image) {
        const T* in = x + plane(image);
        spread += packet_sum([in, mean](int64_t i) { return (in[i] - mean) * (in[i] - mean); }, p_.inner, 0);
      }
      spread = spread / count;
      const T inverse = std::sqrt(T{1} / (spread + p_.epsilon));
      const T factor = inverse * reals<T>(run, 1)[c], shift = reals<T>(run, 2)[c] - mean * factor;
      const T running[4] = {reals<T>(run, 3)[c] * keep_ + mean * (T{1} - keep_),
                            reals<T>(run, 4)[c] * keep_ + spread * (T{1} - keep_), mean, inverse};
      bool numbers = !std::isnan(factor + shift);
      for (size_t output = 1; output < outputs_; ++output) {
        numbers = numbers && !std::isnan(running[output - 1]);
        results<T>(run, output)[c] = running[output - 1];
      }
      for (int64_t image = 0; image < images && numbers; ++image) {
        const T* in = x + plane(image);
        T* out = results<T>(run, 0) + plane(image);
        for (int64_t i = 0; i < p_.inner; ++i) out[i] = in[i] * factor + shift;
      }
      return numbers;
    });
  }

 private:
  Planes<T> p_;
  T keep_;
  size_t outputs_ = 1;
};

// Rows of the elements along any axes, which are gathered first: neither scaled nor shifted.
class MomentNormalization final : public Kernel {
 public:
  explicit MomentNormalization(const Step& step) {
    require_reals(step);
    require(step.rule("real_normalization") == "binary32_lanes", "no native rule for this slot");
    const Operand& in = step.input(0);
    require(in.elements > 0 && step.output().shape == in.shape, "there are no rows");
    std::vector<int64_t> strides(in.shape.size(), 1);
    for (int axis = in.rank() - 2; axis >= 0; --axis) strides[axis] = strides[axis + 1] * in.shape[axis + 1];
    std::vector<bool> along(in.shape.size(), false);
    for (const int64_t axis : step.list("axes")) {
      require(axis >= 0 && axis < in.rank(), "an axis is outside of the tensor");
      along[axis] = true;
    }
    places_ = firsts_ = {0};
    int outer = in.rank();
    while (outer > 0 && along[outer - 1]) inner_ *= in.shape[--outer];
    for (int axis = 0; axis < outer; ++axis) {
      std::vector<int64_t>& table = along[axis] ? places_ : firsts_;
      std::vector<int64_t> longer;
      for (const int64_t place : table) {
        for (int64_t i = 0; i < in.shape[axis]; ++i) longer.push_back(place + i * strides[axis]);
      }
      table = std::move(longer);
    }
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  std::string note() const override { return "rows in packets"; }

  void run(const Run& run) const override {
    const int64_t count = length();
    const auto divisor = static_cast<float>(count);
    for_rows(run, static_cast<int64_t>(firsts_.size()), count, [&](int64_t row, int worker) {
      const float* in = reals(run, 0) + firsts_[row];
      float* out = results(run, 0) + firsts_[row];
      auto* line = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      float* to = line;
      for (const int64_t place : places_) to = std::copy_n(in + place, inner_, to);
      const float mean = packet_sum([line](int64_t i) { return line[i]; }, count, row * count) / divisor;
      for (int64_t i = 0; i < count; ++i) line[i] -= mean;
      const auto square = [line](int64_t i) { return line[i] * line[i]; };
      const float deviation = std::sqrt(packet_sum(square, count, 0) / divisor);
      const float* from = line;
      for (const int64_t place : places_) {
        for (int64_t i = 0; i < inner_; ++i) out[place + i] = from[i] / deviation;
        from += inner_;
      }
      return deviation > 0 && deviation - deviation == 0.0f;
    });
  }

 private:
  int64_t length() const { return static_cast<int64_t>(places_.size()) * inner_; }
  int64_t worker_bytes() const { return (length() * 4 + 63) / 64 * 64; }

  std::vector<int64_t> places_, firsts_;  // of a row's pieces of `inner_` neighbours, and of the rows
  int64_t inner_ = 1;
};

std::unique_ptr<Kernel> make_batch_normalization(const Step& step, const CoreSet& cores) {
  if (step.rules.count("range_normalization")) return make_ranged_normalization(step, cores);
  if (step.rules.count("affine_scale")) return make_affine_normalization(step);
  if (step.input(0).type == Type::f64) return std::make_unique<GivenNormalization<double>>(step);
  return std::make_unique<GivenNormalization<float>>(step);
}

std::unique_ptr<Kernel> make_batch_training(const Step& step, const CoreSet&) {
  if (step.input(0).type == Type::f64) return std::make_unique<OwnNormalization<double>>(step);
  return std::make_unique<OwnNormalization<float>>(step);
}

std::unique_ptr<Kernel> make_group_normalization(const Step& step, const CoreSet&) {
  return std::make_unique<GroupNormalization>(step);
}

std::unique_ptr<Kernel> make_layer_normalization(const Step& step, const CoreSet& cores) {
  const std::string& kind = step.text("kind");
  if (kind == "broadcast" || kind == "branches") {
    if (step.input(0).type == Type::f64) return std::make_unique<SpreadLayerNormalization<double>>(step);
    return std::make_unique<SpreadLayerNormalization<float>>(step);
  }
  if (step.input(0).type == Type::f64) return std::make_unique<WideLayerNormalization>(step);
  return std::make_unique<LayerNormalization>(step, cores);
}

std::unique_ptr<Kernel> make_moment_normalization(const Step& step, const CoreSet&) {
  return std::make_unique<MomentNormalization>(step);
}

BITTRUE_OPERATOR(batch_normalization, make_batch_normalization)
BITTRUE_OPERATOR(batch_training, make_batch_training)
BITTRUE_OPERATOR(group_normalization, make_group_normalization)
BITTRUE_OPERATOR(layer_normalization, make_layer_normalization)
BITTRUE_OPERATOR(mean_variance_normalization, make_moment_normalization)

}  // namespace
}  // namespace bittrue
