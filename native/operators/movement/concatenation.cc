// concatenation: inputs side by side, each brought to the output's parameters by a table where they differ.
#include <algorithm>
#include <array>
#include <cmath>

#include "operators/core/byte_tables.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"
#include "operators/quantization/ranges.h"

namespace bittrue {
namespace {

using Table = std::array<uint8_t, 256>;

// Tensors with ranges that are operands: the tables of every run, by the rule binary32_quotients_even.
class RangeTables {
 public:
  explicit RangeTables(const Step& step) : count_(step.inputs.size() / 3), to_(step.output().type) {
    require(step.text("given") == "ranges", "scales are known while running only");
    require(step.rule("range_change") == "binary32_quotients_even" && step.inputs.size() % 3 == 0 && is_8bit(to_),
            "no native rule for this slot");
    for (size_t i = 0; i < count_; ++i) {
      require(is_8bit(step.input(i).type), "no native kernel for these types");
      from_.push_back(step.input(i).type);
    }
    for (size_t i = count_; i < step.inputs.size(); ++i) require_end(step.input(i));
  }

  size_t count() const { return count_; }

  // From stored byte to stored byte; false where nothing changes. Throws Undefined for ranges without a factor.
  bool of(const Run& run, size_t tensor, Table* table) const {
    float whole = 0;
    for (size_t i = 0; i < count_; ++i) {
      const float low = end(run, i, 0), high = end(run, i, 1);
      if (!std::isfinite(low) || !std::isfinite(high)) throw Undefined();
      // The range that holds them all has 0 inside.
      whole = std::max({whole, -low, high});
    }
    const float own = std::max(std::fabs(end(run, tensor, 0)), std::fabs(end(run, tensor, 1)));
    const float one = levels(from_[tensor]) / own, other = levels(to_) / whole;
    if (one == other) {
      if (from_[tensor] != to_) throw Undefined();
      return false;
    }
    const float factor = other / one;
    if (!(std::fabs(factor) < 0x1p118f)) throw Undefined();
    const auto least = static_cast<float>(-flip_of(to_)), most = static_cast<float>(255 - flip_of(to_));
    for (int q = 0; q < 256; ++q) {
      const float moved = std::nearbyint(static_cast<float>(q - flip_of(from_[tensor])) * factor);
      (*table)[q] = static_cast<uint8_t>(static_cast<int>(std::min(std::max(moved, least), most)) + flip_of(to_));
    }
    return true;
  }

 private:
  static float levels(Type type) { return type == Type::s8 ? 127.5f : 255.5f; }
  float end(const Run& run, size_t tensor, size_t which) const {
    return *reinterpret_cast<const float*>(run.inputs[count_ + 2 * tensor + which]);
  }

  size_t count_;
  Type to_;
  std::vector<Type> from_;
};

class Concatenation final : public Kernel {
 public:
  Concatenation(const Step& step, const CoreSet& cores) : lookup_(cores.lookup()) {
    const Operand& out = step.output();
    const int64_t axis = step.integer("axis", 0, out.rank() - 1);
    if (step.integers.count("late") != 0 && step.integer("late", 0, 1) != 0) {
      ranges_ = std::make_unique<RangeTables>(step);
    }
    const size_t count = ranges_ != nullptr ? ranges_->count() : step.inputs.size();
    const std::vector<int64_t> tables = ranges_ != nullptr ? std::vector<int64_t>(count, -1) : step.list("tables");
    require(tables.size() == count, "one table number per input is needed");
    const std::vector<int64_t> target = byte_strides(out);
    int64_t begin = 0;
    for (size_t i = 0; i < count; ++i) {
      Operand in = step.input(i);
      // A table turns bytes of one type into those of another.
      const bool turns = tables[i] >= 0 || ranges_ != nullptr;
      if (!turns || !is_8bit(in.type) || !is_8bit(out.type)) require_same_type(in, out);
      if (in.rank() == 0) in.shape = {1};  // scalars make a vector
      require(in.rank() == out.rank(), "ranks differ");
      const std::vector<int64_t> source = byte_strides(in);
      std::vector<CopyAxis> axes;
      for (int a = 0; a < out.rank(); ++a) {
        require(a == axis || in.shape[a] == out.shape[a], "sizes differ");
        axes.push_back({in.shape[a], source[a], target[a]});
      }
      parts_.push_back({StridedCopy(axes, type_bytes(out.type), 0, begin * target[axis]), -1});
      begin += in.shape[axis];
      require(!turns || parts_.back().copy.transforms(), "no contiguous pieces");
      if (tables[i] < 0) continue;
      parts_.back().table = static_cast<int>(tables_.size());
      tables_.push_back(read_byte_table(step, tables[i]));
    }
    require(begin == out.shape[axis], "the inputs do not fill the output");
  }

  void run(const Run& run) const override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      Table own;
      const bool ranged = ranges_ != nullptr && ranges_->of(run, i, &own);
      if (part.table < 0 && !ranged) {
        part.copy.run(run.inputs[i], run.outputs[0], run.pool);
        continue;
      }
      const uint8_t* table = ranged ? own.data() : tables_[part.table].data();
      part.copy.transform(
          run.inputs[i], run.outputs[0], run.pool,
          [&](const uint8_t* source, uint8_t* target, int64_t bytes) { lookup_(table, source, target, bytes); });
    }
  }
  std::string note() const override {
    return tables_.empty() && ranges_ == nullptr ? "strided copies" : "strided copies, lookup tables";
  }

 private:
  struct Part {
    StridedCopy copy;
    int table;
  };

  Lookup lookup_;
  std::vector<Part> parts_;
  std::vector<Table> tables_;
  std::unique_ptr<RangeTables> ranges_;  // where every run brings its own
};

std::unique_ptr<Kernel> make_concatenation(const Step& step, const CoreSet& cores) {
  return std::make_unique<Concatenation>(step, cores);
}

BITTRUE_OPERATOR(concatenation, make_concatenation)

}  // namespace
}  // namespace bittrue
