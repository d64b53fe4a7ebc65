// softmax and log_softmax: exp(x - max) over its sum along rows, and the logarithm of that.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "arithmetic/elementary.h"
#include "core/kernel.h"
#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/reduction/softmax.h"
#include "rules/center.h"
#include "rules/log_softmax.h"
#include "rules/softmax.h"

namespace bittrue {
namespace {

constexpr int64_t kParallelBytes = 4000;

// The rows of both sides, and the interval of the results.
struct SoftmaxRows {
  int64_t rows = 0, length = 0, offset = 0, low = 0, high = 0;
  int flip = 0;

  explicit SoftmaxRows(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.rank() >= 1 && in.elements > 0 && in.elements == out.elements && in.dense() && out.dense(),
            "both sides must be dense and equal in shape");
    const std::vector<int64_t>& view = step.list("view");
    require(view.size() == 3 && view[0] > 0 && view[1] > 0 && view[2] == 1 && in.elements / view[1] == view[0] &&
                in.elements % view[1] == 0,
            "rows must lie side by side and fill the tensor");
    rows = view[0], length = view[1];
    constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
    offset = step.integer("offset", kLow, kHigh);
    low = step.integer("low", kLow, kHigh);
    high = step.integer("high", kLow, kHigh);
    flip = flip_of(out.type);
  }

  int64_t stored(int64_t value) const { return std::min(std::max(value + offset, low), high) + flip; }

  // one(row, worker) says whether the row has a result.
  template <class One>
  void run(const Run& run, const One& one) const {
    std::atomic<bool> defined{true};
    const auto task = [&](int64_t row, int worker) {
      if (!one(row, worker)) defined.store(false, std::memory_order_relaxed);
    };
    if (rows * length < kParallelBytes) {
      for (int64_t row = 0; row < rows; ++row) task(row, 0);
    } else {
      run.pool.parallel(rows, task);
    }
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
  }
};

using Table = std::array<int32_t, 256>;

// An array with one entry per difference -255..0.
Table differences(const Step& step, const char* key, int64_t least) {
  const Array& entries = step.array(key);
  require(entries.count == 256, "one entry per difference is needed");
  Table table;
  for (int i = 0; i < 256; ++i) {
    const int64_t entry = entries.integer(i);
    require(entry >= least && entry <= std::numeric_limits<int32_t>::max(), "an entry is out of range");
    table[i] = static_cast<int32_t>(entry);
  }
  return table;
}

// The summands of exponentials in F0. The largest element's own one keeps every sum far from 0.
Table summands_of(const Table& exponentials) {
  require(exponentials[255] >= 1 << 30, "the exponential of 0 must be 1");
  Table result;
  for (int i = 0; i < 256; ++i) result[i] = static_cast<int32_t>(rules::summand(exponentials[i]));
  return result;
}

int32_t largest_byte(const uint8_t* in, int64_t length) {
  uint8_t largest = 0;
  for (int64_t i = 0; i < length; ++i) largest = std::max(largest, in[i]);
  return largest;
}

struct Softmax {
  Table exponentials;
  int bits;

  explicit Softmax(const Step& step)
      : exponentials(differences(step, "exponentials", 0)), bits(static_cast<int>(step.integer("bits", 8, 16))) {}
  Table summands() const { return summands_of(exponentials); }
  bool defined(int64_t sum) const { return sum < rules::exp_f5_sum_limit(bits); }
  // Entries before this one are 0.
  int first() const {
    int i = 0;
    while (exponentials[i] == 0) ++i;
    return i;
  }
  struct Row {
    const Table& exponentials;
    rules::ExpF5Row row;
    int64_t operator()(int entry) const { return row(exponentials[entry]); }
  };
  Row row(int64_t sum) const { return {exponentials, rules::ExpF5Row(sum, bits)}; }
};

struct LogSoftmax {
  Table exponentials, scaled;
  int64_t smallest;
  rules::Multiplier inverse;

  explicit LogSoftmax(const Step& step)
      : exponentials(differences(step, "exponentials", 0)),
        scaled(differences(step, "scaled", std::numeric_limits<int32_t>::min())),
        smallest(step.array("smallest").count == 1 ? step.array("smallest").integer(0) : 0),
        inverse(rescaling(step, "q31_two_step_up_away", "").multiplier) {
    require(smallest >= std::numeric_limits<int32_t>::min() && smallest <= 0,
            "the smallest difference is out of range");
  }
  Table summands() const { return summands_of(exponentials); }
  bool defined(int64_t sum) const { return sum < rules::exp_f5_sum_limit(32); }
  int first() const { return 0; }
  struct Row {
    const Table& scaled;
    rules::LogSoftmaxRow row;
    int64_t operator()(int entry) const { return row(entry - 255, scaled[entry]); }
  };
  Row row(int64_t sum) const { return {scaled, rules::LogSoftmaxRow(sum, smallest, inverse)}; }
};

// counted_table_half_up: shares of a sum of integers, modulo 2^32, in units of 2^-8.
struct CountedSoftmax {
  Table entries;

  explicit CountedSoftmax(const Step& step) : entries(differences(step, "exponentials", 0)) {
    require(entries[255] >= 1, "the exponential of 0 must be above 0");
  }
  const Table& summands() const { return entries; }
  bool defined(int64_t sum) const { return static_cast<uint32_t>(sum) != 0; }
  int first() const { return 0; }
  struct Row {
    const Table& entries;
    int64_t sum;
    int64_t operator()(int entry) const { return ((int64_t{entries[entry]} << 8) + (sum >> 1)) / sum; }
  };
  Row row(int64_t sum) const { return {entries, static_cast<uint32_t>(sum)}; }
};

// u16_table_two_step_up: units of 2^-16 by the Q31 multiplier of binary32(1 / (sum * output scale)).
struct UnitsSoftmax {
  Table entries;
  float output_scale;

  explicit UnitsSoftmax(const Step& step) : entries(differences(step, "exponentials", 0)) {
    require(entries[255] >= 1, "the exponential of 0 must be above 0");
    require(step.array("output_scale").count == 1, "there must be one output scale");
    output_scale = static_cast<float>(step.array("output_scale").real(0));
  }
  const Table& summands() const { return entries; }
  float inverse(int64_t sum) const { return 1.0f / (static_cast<float>(arithmetic::wrap_s32(sum)) * output_scale); }
  bool defined(int64_t sum) const { return inverse(sum) >= 0 && std::isfinite(inverse(sum)); }
  int first() const { return 0; }
  struct Row {
    const Table& entries;
    rules::Multiplier inverse;
    int64_t operator()(int entry) const { return rules::q31_two_step_up_up(entries[entry], inverse); }
  };
  Row row(int64_t sum) const {
    int exponent = 0;
    const double fraction = std::frexp(static_cast<double>(inverse(sum)), &exponent);
    // A binary32 number has 24 bits: the multiplier is exact. What is too small to be encoded is 0.
    if (exponent < -31) return {entries, {0, 0, 0.0}};
    return {entries, {static_cast<int64_t>(std::ldexp(fraction, 31)), exponent, 0.0}};
  }
};

// 8-bit input: an element's result follows from its difference to the row's largest one.
template <class Out, class Rule>
class ByDifference final : public Kernel {
 public:
  explicit ByDifference(const Step& step)
      : rows_(step), rule_(step), summands_(rule_.summands()), first_(rule_.first()) {}

  void run(const Run& run) const override {
    rows_.run(run, [&](int64_t index, int) {
      const int64_t length = rows_.length;
      const uint8_t* in = run.inputs[0] + index * length;
      auto* out = reinterpret_cast<Out*>(run.outputs[0]) + index * length;
      const int largest = largest_byte(in, length);
      const int32_t* summand = summands_.data() + 255 - largest;
      int64_t sum = 0;
      for (int64_t i = 0; i < length; ++i) sum += summand[in[i]];
      if (!rule_.defined(sum)) return false;
      const auto row = rule_.row(sum);
      if (length < 256 - first_) {
        for (int64_t i = 0; i < length; ++i) out[i] = static_cast<Out>(rows_.stored(row(in[i] + 255 - largest)));
        return true;
      }
      Out table[256];
      const auto nothing = static_cast<Out>(rows_.stored(0));
      std::fill(table, table + std::max(0, first_ - 255 + largest), nothing);
      for (int x = std::max(0, first_ - 255 + largest); x <= largest; ++x) {
        table[x] = static_cast<Out>(rows_.stored(row(x + 255 - largest)));
      }
      for (int64_t i = 0; i < length; ++i) out[i] = table[in[i]];
      return true;
    });
  }
  std::string note() const override { return "by difference"; }

 private:
  SoftmaxRows rows_;
  Rule rule_;
  Table summands_;
  int first_;
};

class SoftmaxShorts final : public Kernel {
 public:
  explicit SoftmaxShorts(const Step& step)
      : rows_(step),
        multiplier_(rescaling(step, "q31_two_step_up_away", "").multiplier),
        exponentials_(table(step, "exp", 0)),
        reciprocals_(table(step, "reciprocal", std::numeric_limits<int16_t>::min())) {
    // Then every sum is at least 1.
    require(rules::tables_513_exponential(0, multiplier_, exponentials_.data()) >= 1, "the exponential of 0 must be 1");
    per_worker_ = (rows_.length * 2 + 63) / 64 * 64;
  }

  void run(const Run& run) const override {
    rows_.run(run, [&](int64_t index, int worker) {
      const int64_t length = rows_.length;
      const auto* in = reinterpret_cast<const int16_t*>(run.inputs[0]) + index * length;
      auto* out = reinterpret_cast<int16_t*>(run.outputs[0]) + index * length;
      auto* entries = reinterpret_cast<int16_t*>(run.scratch + worker * per_worker_);
      const int64_t largest = *std::max_element(in, in + length);
      int64_t sum = 0;
      for (int64_t i = 0; i < length; ++i) {
        entries[i] =
            static_cast<int16_t>(rules::tables_513_exponential(in[i] - largest, multiplier_, exponentials_.data()));
        sum += entries[i];
      }
      if (sum > std::numeric_limits<int32_t>::max()) return false;
      const rules::Tables513Row row(sum, reciprocals_.data());
      for (int64_t i = 0; i < length; ++i) out[i] = static_cast<int16_t>(rows_.stored(row(entries[i])));
      return true;
    });
  }
  int64_t scratch_bytes(int threads) const override { return threads * per_worker_; }

 private:
  static std::vector<int16_t> table(const Step& step, const char* key, int64_t least) {
    const Array& entries = step.array(key);
    require(entries.count == 513, "513 entries are needed");
    std::vector<int16_t> result;
    for (int i = 0; i < 513; ++i) {
      require(entries.integer(i) >= least && entries.integer(i) <= 32767, "an entry is out of range");
      result.push_back(static_cast<int16_t>(entries.integer(i)));
    }
    return result;
  }

  SoftmaxRows rows_;
  rules::Multiplier multiplier_;
  std::vector<int16_t> exponentials_, reciprocals_;
  int64_t per_worker_ = 0;
};

// Exponentials of differences -255..0 in binary32, and the output's scale.
struct RealTable {
  std::array<float, 256> exponentials;
  float output_scale;

  explicit RealTable(const Step& step) {
    const Array& entries = step.array("exponentials");
    require(entries.type == Type::f32 && entries.count == 256, "one entry per difference is needed");
    for (int i = 0; i < 256; ++i) exponentials[i] = static_cast<float>(entries.real(i));
    require(step.array("output_scale").count == 1, "there must be one output scale");
    output_scale = static_cast<float>(step.array("output_scale").real(0));
  }
  // From left to right.
  float sum(const uint8_t* in, int64_t length, int largest) const {
    const float* at = exponentials.data() + 255 - largest;
    float total = at[in[0]];
    for (int64_t i = 1; i < length; ++i) total += at[in[i]];
    return total;
  }
};

// What does not fit 32 bits, NaN included, becomes -2^31; the offset is added modulo 2^32.
template <class Out>
Out stored_real(const SoftmaxRows& rows, float rounded) {
  const bool fits = rounded >= -2147483648.0f && rounded < 2147483648.0f;
  const int64_t value = fits ? static_cast<int64_t>(rounded) : std::numeric_limits<int32_t>::min();
  const int64_t moved = arithmetic::wrap_s32(value + rows.offset);
  return static_cast<Out>(std::min(std::max(moved, rows.low), rows.high) + rows.flip);
}

// binary32_table_away and binary32_table_half_up.
template <class Out>
class TableOfRealsSoftmax final : public Kernel {
 public:
  TableOfRealsSoftmax(const Step& step, bool away) : rows_(step), table_(step), away_(away) {}

  void run(const Run& run) const override {
    rows_.run(run, [&](int64_t index, int) {
      const int64_t length = rows_.length;
      const uint8_t* in = run.inputs[0] + index * length;
      auto* out = reinterpret_cast<Out*>(run.outputs[0]) + index * length;
      const int largest = largest_byte(in, length);
      const float inverse = 1.0f / (table_.sum(in, length, largest) * table_.output_scale);
      for (int64_t i = 0; i < length; ++i) {
        const float share = table_.exponentials[in[i] + 255 - largest] * inverse;
        out[i] = stored_real<Out>(rows_, away_ ? std::round(share) : std::trunc(share + 0.5f));
      }
      return true;
    });
  }

 private:
  SoftmaxRows rows_;
  RealTable table_;
  bool away_;
};

// binary32_reals_away: codes become real numbers first, one for each of the 256 bytes.
class SoftmaxOfReals final : public Kernel {
 public:
  explicit SoftmaxOfReals(const Step& step) : rows_(step) {
    const auto one = [&](const char* key) -> const Array& {
      require(step.array(key).count == 1, "there must be one number");
      return step.array(key);
    };
    const auto scale = static_cast<float>(one("input_scale").real(0));
    const auto output_scale = static_cast<float>(one("output_scale").real(0));
    const int64_t zero_point = one("input_zero_point").integer(0);
    // Then larger bytes are larger numbers, and all of them finite.
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    require(scale > 0 && scale < 1e30f && output_scale > 0 && output_scale < kInfinity, "a scale is out of range");
    inverse_ = 1.0f / output_scale;
    require(zero_point >= -kLargest && zero_point <= kLargest, "the zero point is out of range");
    for (int byte = 0; byte < 256; ++byte) {
      reals_[byte] = static_cast<float>(value_of_byte(step.input(0).type, byte) - zero_point) * scale;
    }
  }

  void run(const Run& run) const override {
    rows_.run(run, [&](int64_t index, int) {
      const int64_t length = rows_.length;
      const uint8_t* in = run.inputs[0] + index * length;
      uint8_t* out = run.outputs[0] + index * length;
      const int largest = largest_byte(in, length);
      // Few elements need few exponentials; a byte that does not occur is never read.
      float powers[256];
      if (length < 256) {
        for (int64_t i = 0; i < length; ++i) powers[in[i]] = arithmetic::exp(reals_[in[i]] - reals_[largest]);
      } else {
        for (int byte = 0; byte <= largest; ++byte) powers[byte] = arithmetic::exp(reals_[byte] - reals_[largest]);
      }
      float sum = 0.0f;
      for (int64_t i = 0; i < length; ++i) sum += powers[in[i]];
      constexpr float kEnd = 1073741824.0f;
      for (int64_t i = 0; i < length; ++i) {
        const float steps = std::round(powers[in[i]] / sum * inverse_);
        out[i] = static_cast<uint8_t>(rows_.stored(static_cast<int64_t>(std::min(std::max(steps, -kEnd), kEnd))));
      }
      return true;
    });
  }

 private:
  static constexpr int64_t kLargest = 1 << 16;

  SoftmaxRows rows_;
  float reals_[256], inverse_ = 1.0f;
};

// binary_powers_s32: exponentials and their shares by shifts and additions of 32 bits, then rescaled.
class ShiftedSoftmax final : public Kernel {
 public:
  explicit ShiftedSoftmax(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(step.rule("shifted_softmax") == "binary_powers_s32", "no native rule for this slot");
    require(is_8bit(in.type) && is_8bit(out.type) && in.dense() && out.dense(), "no native kernel for these types");
    const std::vector<int64_t>& view = step.list("view");
    require(view.size() == 3 && view[0] > 0 && view[1] > 0 && view[2] > 0 && in.elements == out.elements &&
                in.elements / view[1] / view[2] == view[0] && in.elements % (view[1] * view[2]) == 0,
            "rows must fill the tensor");
    rows_ = view[0] * view[2], length_ = view[1], inner_ = view[2];
    constexpr int64_t kHigh = std::numeric_limits<int32_t>::max();
    unit_ = static_cast<int32_t>(step.integer("unit", 1, kHigh));
    step.integer("input_zero_point", -kHigh / 2, kHigh / 2);  // differences from the largest number are all that counts
    const auto center = step.rules.find("center");
    require(center == step.rules.end() || rules::find_rule(center->second, center_), "no native rule for this slot");
    requantize_ = requantization(step, any_rescaling(step, step.rule("rescale"), ""), int64_t{1} << 31);
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  void run(const Run& run) const override {
    std::atomic<bool> defined{true};
    run.pool.parallel(rows_, [&](int64_t row, int worker) {
      const int64_t first = row / inner_ * length_ * inner_ + row % inner_;
      auto* numbers = reinterpret_cast<int32_t*>(run.scratch + worker * worker_bytes());
      if (!one(run.inputs[0] + first, numbers, run.outputs[0] + first)) defined.store(false, std::memory_order_relaxed);
    });
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int32_t kMostSteps = 20;

  int64_t worker_bytes() const { return (length_ * 8 + 63) / 64 * 64; }

  // False where the sum is 0.
  bool one(const uint8_t* in, int32_t* rests, uint8_t* out) const {
    int32_t* steps = rests + length_;
    uint8_t largest = 0;
    for (int64_t i = 0; i < length_; ++i) largest = std::max(largest, in[i * inner_]);
    int32_t most = 0;
    for (int64_t i = 0; i < length_; ++i) {
      const int32_t x = in[i * inner_] - largest, power = x + (x >> 1) - (x >> 4);
      steps[i] = std::min(std::max(-power / unit_, 0), kMostSteps);
      rests[i] = static_cast<int32_t>(static_cast<uint32_t>(power) +
                                      static_cast<uint32_t>(steps[i]) * static_cast<uint32_t>(unit_));
      most = std::max(most, steps[i]);
    }
    uint32_t total = 0;
    for (int64_t i = 0; i < length_; ++i) {
      const auto base = static_cast<uint32_t>(rests[i] >> 1) + static_cast<uint32_t>(unit_);
      rests[i] = static_cast<int32_t>(base << (most - steps[i]));
      total += static_cast<uint32_t>(rests[i]);
    }
    if (total == 0) return false;
    const auto factor = static_cast<uint32_t>((1 << 30) / static_cast<int32_t>(total));
    for (int64_t i = 0; i < length_; ++i) {
      const int64_t share = static_cast<int32_t>(factor * static_cast<uint32_t>(rests[i])) >> 23;
      out[i * inner_] = static_cast<uint8_t>(rules::requantize(requantize_, rules::center(center_, share, 0), 0));
    }
    return true;
  }

  int64_t rows_ = 0, length_ = 0, inner_ = 0;
  int32_t unit_ = 1;
  rules::CenterRule center_ = rules::CenterRule::s32_wrap;
  rules::Requantize requantize_;
};

std::unique_ptr<Kernel> make_softmax(const Step& step, const CoreSet& cores) {
  if (step.rules.count("shifted_softmax")) return std::make_unique<ShiftedSoftmax>(step);
  const Type from = step.input(0).type, to = step.output().type;
  if (step.rules.count("affine_softmax")) return make_quantized_softmax(step);
  if (step.rules.count("real_softmax")) return make_real_softmax(step, cores, false);
  if (step.rules.count("levels")) return make_level_softmax(step);
  const std::string& rule = step.rule("softmax");
  if (rule == "exp_f5_sum_f12_reciprocal_away" && is_8bit(from)) {
    if (is_8bit(to)) return std::make_unique<ByDifference<uint8_t, Softmax>>(step);
    if (to == Type::s16) return std::make_unique<ByDifference<int16_t, Softmax>>(step);
  }
  if (rule == "counted_table_half_up" && is_8bit(from) && is_8bit(to)) {
    return std::make_unique<ByDifference<uint8_t, CountedSoftmax>>(step);
  }
  if (rule == "u16_table_two_step_up" && is_8bit(from) && is_8bit(to)) {
    return std::make_unique<ByDifference<uint8_t, UnitsSoftmax>>(step);
  }
  if ((rule == "binary32_table_away" || rule == "binary32_table_half_up") && is_8bit(from)) {
    const bool away = rule == "binary32_table_away";
    if (is_8bit(to)) return std::make_unique<TableOfRealsSoftmax<uint8_t>>(step, away);
    if (to == Type::s16) return std::make_unique<TableOfRealsSoftmax<int16_t>>(step, away);
  }
  if (rule == "binary32_reals_away" && is_8bit(from) && is_8bit(to)) return std::make_unique<SoftmaxOfReals>(step);
  if (rule == "tables_513_one_step_up" && from == Type::s16 && to == Type::s16) {
    return std::make_unique<SoftmaxShorts>(step);
  }
  return nullptr;
}

std::unique_ptr<Kernel> make_log_softmax(const Step& step, const CoreSet& cores) {
  if (step.rules.count("real_softmax")) return make_real_softmax(step, cores, true);
  if (step.rule("log_softmax") != "exp_f5_sum_f12_logarithm_away") return nullptr;
  if (!is_8bit(step.input(0).type) || !is_8bit(step.output().type)) return nullptr;
  return std::make_unique<ByDifference<uint8_t, LogSoftmax>>(step);
}

BITTRUE_OPERATOR(log_softmax, make_log_softmax)
BITTRUE_OPERATOR(softmax, make_softmax)

}  // namespace
}  // namespace bittrue
