// select: bytes of the second input where the first is true, of the third elsewhere, each brought to the output's
// parameters by a table where they differ. Slot choice: one of the two loses the signs of its zeros.
#include <algorithm>
#include <cstring>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/byte_tables.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

// One axis of the output; strides of the three inputs in elements, 0 where one is repeated. The output is dense.
struct SelectAxis {
  int64_t dimension, condition, chosen, other;
};

// Without a branch: conditions are hard to predict.
template <class T>
inline T choose(uint8_t condition, T chosen, T other) {
  const T mask = static_cast<T>(T{0} - static_cast<T>(condition != 0));
  return static_cast<T>(other ^ ((chosen ^ other) & mask));
}

struct Bytes16 {
  uint64_t low, high;
};

inline Bytes16 choose(uint8_t condition, const Bytes16& chosen, const Bytes16& other) {
  return {choose(condition, chosen.low, other.low), choose(condition, chosen.high, other.high)};
}

template <class T>
void select_row(const uint8_t* condition, const T* chosen, const T* other, T* out, const SelectAxis& axis,
                int64_t count) {
  if (axis.condition == 0) {
    const T* from = *condition != 0 ? chosen : other;
    const int64_t stride = *condition != 0 ? axis.chosen : axis.other;
    for (int64_t i = 0; i < count; ++i) out[i] = from[i * stride];
  } else if (axis.chosen == 1 && axis.other == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = choose(condition[i], chosen[i], other[i]);
  } else if (axis.condition == 1 && axis.chosen == 1 && axis.other == 0) {
    const T one = *other;
    for (int64_t i = 0; i < count; ++i) out[i] = choose(condition[i], chosen[i], one);
  } else if (axis.condition == 1 && axis.chosen == 0 && axis.other == 1) {
    const T one = *chosen;
    for (int64_t i = 0; i < count; ++i) out[i] = choose(condition[i], one, other[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = choose(condition[i * axis.condition], chosen[i * axis.chosen], other[i * axis.other]);
    }
  }
}

// Which of the two tensors gives its zeros without their signs.
enum class Unsigned { none, chosen, other };

// Without comparisons of numbers, which the baseline's vectors lack for 64 bits.
template <class T>
void drop_signs(const uint8_t* condition, int64_t stride, T* out, int64_t count, bool chosen) {
  constexpr int kTop = 8 * sizeof(T) - 1;
  const auto drop = [&](int64_t i, int64_t place) {
    const T magnitude = static_cast<T>(out[i] << 1);
    const T nonzero = static_cast<T>(static_cast<T>(magnitude | static_cast<T>(T{0} - magnitude)) >> kTop);
    const T kept = static_cast<T>(nonzero | static_cast<T>((condition[place] != 0) != chosen));
    out[i] = static_cast<T>(out[i] & static_cast<T>(T{0} - kept));
  };
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) drop(i, i);
  } else {
    for (int64_t i = 0; i < count; ++i) drop(i, i * stride);
  }
}

template <class T>
class Select final : public Kernel {
 public:
  Select(std::vector<SelectAxis> axes, int64_t elements, Unsigned zeros)
      : axes_(std::move(axes)), elements_(elements), zeros_(zeros) {}

  bool bears_changes() const override { return true; }

  void run(const Run& run) const override {
    const SelectAxis& row = axes_.back();
    const int64_t rows = elements_ == 0 ? 0 : elements_ / row.dimension;
    // Long rows are cut into parts.
    constexpr int64_t kPart = 16 << 10;
    const int64_t part = std::min(row.dimension, kPart), parts = rows == 0 ? 0 : (row.dimension + part - 1) / part;
    const int64_t units = rows * parts;
    int64_t tasks = run.pool.threads() > 1 ? elements_ / kPart : 1;
    tasks = cut(std::min<int64_t>(tasks, 4 * run.pool.threads()), elements_, kTaskMostBytes, units);
    run.pool.parallel(tasks, [&](int64_t task, int) {
      for (int64_t unit = units * task / tasks; unit < units * (task + 1) / tasks; ++unit) {
        const int64_t first = unit % parts * part;
        int64_t rest = unit / parts, c = first * row.condition, t = first * row.chosen, f = first * row.other;
        for (size_t a = axes_.size() - 1; a-- > 0;) {
          const int64_t at = rest % axes_[a].dimension;
          rest /= axes_[a].dimension;
          c += at * axes_[a].condition, t += at * axes_[a].chosen, f += at * axes_[a].other;
        }
        T* out = reinterpret_cast<T*>(run.outputs[0]) + unit / parts * row.dimension + first;
        const int64_t count = std::min(part, row.dimension - first);
        select_row(run.inputs[0] + c, reinterpret_cast<const T*>(run.inputs[1]) + t,
                   reinterpret_cast<const T*>(run.inputs[2]) + f, out, row, count);
        if constexpr (sizeof(T) > 1 && sizeof(T) <= 8) {
          if (zeros_ != Unsigned::none) {
            drop_signs(run.inputs[0] + c, row.condition, out, count, zeros_ == Unsigned::chosen);
          }
        }
      }
    });
  }

 private:
  std::vector<SelectAxis> axes_;
  int64_t elements_;
  Unsigned zeros_;
};

// Strides in elements of `shape`, placed under `out` from the end (or from the front, for conditions that count
// slices of the first axis), 0 where it is repeated.
std::vector<int64_t> strides_under(const std::vector<int64_t>& shape, const std::vector<int64_t>& out, bool front) {
  require(shape.size() <= out.size(), "an input has too many axes");
  std::vector<int64_t> strides(out.size(), 0);
  const size_t ahead = front ? 0 : out.size() - shape.size();
  int64_t stride = 1;
  for (size_t a = shape.size(); a-- > 0;) {
    require(shape[a] == 1 || shape[a] == out[ahead + a], "the shapes do not broadcast");
    strides[ahead + a] = shape[a] == 1 ? 0 : stride;
    stride *= shape[a];
  }
  return strides;
}

std::unique_ptr<Kernel> make_copying(const Step& step) {
  const Operand &condition = step.input(0), &chosen = step.input(1), &other = step.input(2), &out = step.output();
  require(condition.type == Type::boolean, "the condition must be a truth value");
  require_same_type(chosen, out);
  require_same_type(other, out);
  require(condition.dense() && chosen.dense() && other.dense() && out.dense(), "all sides must be dense");
  std::vector<SelectAxis> axes;
  if (out.elements == 1) {
    // The output may have any number of axes of dimension 1.
    require(condition.elements == 1 && chosen.elements == 1 && other.elements == 1, "the shapes do not fit");
  } else {
    const bool by_row = step.integer("by_row", 0, 1) != 0;
    require(!by_row || condition.rank() == 1, "one truth value per slice is needed");
    const auto c = strides_under(condition.shape, out.shape, by_row), t = strides_under(chosen.shape, out.shape, false),
               f = strides_under(other.shape, out.shape, false);
    for (size_t a = 0; a < out.shape.size(); ++a) {
      const SelectAxis axis{out.shape[a], c[a], t[a], f[a]};
      if (axis.dimension == 1) continue;
      if (!axes.empty()) {
        SelectAxis& last = axes.back();
        if (last.condition == axis.condition * axis.dimension && last.chosen == axis.chosen * axis.dimension &&
            last.other == axis.other * axis.dimension) {
          last = {last.dimension * axis.dimension, axis.condition, axis.chosen, axis.other};
          continue;
        }
      }
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, 0, 0, 0});
  Unsigned zeros = Unsigned::none;
  if (step.rules.count("choice") != 0) {
    require(step.rule("choice") == "one_unless_zero", "no native rule for this slot");
    require(out.type == Type::f32 || out.type == Type::f64 || is_half(out.type), "zeros with signs are real numbers");
    zeros = step.integer("exchanged", 0, 1) != 0 ? Unsigned::other : Unsigned::chosen;
  }
  switch (type_bytes(out.type)) {
    case 1: return std::make_unique<Select<uint8_t>>(axes, out.elements, zeros);
    case 2: return std::make_unique<Select<uint16_t>>(axes, out.elements, zeros);
    case 4: return std::make_unique<Select<uint32_t>>(axes, out.elements, zeros);
    case 8: return std::make_unique<Select<uint64_t>>(axes, out.elements, zeros);
    default: return std::make_unique<Select<Bytes16>>(axes, out.elements, zeros);
  }
}

class ByteWhere final : public Kernel {
 public:
  ByteWhere(const Step& step, const CoreSet& cores) : select_(make_copying(step)), lookup_(cores.lookup()) {
    const std::vector<int64_t>& tables = step.list("tables");
    require(step.inputs.size() == 3 && tables.size() == 2, "a table number for each value is needed");
    for (int i = 0; i < 2; ++i) {
      if (tables[i] < 0) continue;
      sides_[i] = {step.input(i + 1).elements, read_byte_table(step, tables[i])};
    }
  }

  void run(const Run& run) const override {
    uint8_t* inputs[3] = {run.inputs[0], run.inputs[1], run.inputs[2]};
    uint8_t* moved = run.scratch;
    for (int i = 0; i < 2; ++i) {
      const Side& side = sides_[i];
      if (side.elements == 0) continue;
      const uint8_t* source = run.inputs[i + 1];
      run.pool.parallel((side.elements + kPart - 1) / kPart, [&](int64_t part, int) {
        const int64_t first = part * kPart;
        lookup_(side.table.data(), source + first, moved + first, std::min(kPart, side.elements - first));
      });
      inputs[i + 1] = moved;
      moved += padded(side.elements);
    }
    select_->run({inputs, run.outputs, moved, run.pool});
  }
  int64_t scratch_bytes(int threads) const override {
    return padded(sides_[0].elements) + padded(sides_[1].elements) + select_->scratch_bytes(threads);
  }
  std::string note() const override { return "lookup tables"; }

 private:
  static constexpr int64_t kPart = 64 << 10;
  // Without elements: bytes stay as they are.
  struct Side {
    int64_t elements = 0;
    std::array<uint8_t, 256> table{};
  };
  static int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  std::unique_ptr<Kernel> select_;
  Lookup lookup_;
  Side sides_[2];
};

std::unique_ptr<Kernel> make_select(const Step& step, const CoreSet& cores) {
  require(step.inputs.size() == 3, "scales are known while running only");
  if (!step.has_array("tables")) return make_copying(step);
  return std::make_unique<ByteWhere>(step, cores);
}

BITTRUE_OPERATOR(select, make_select)

}  // namespace
}  // namespace bittrue
