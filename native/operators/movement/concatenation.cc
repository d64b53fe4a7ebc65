// concatenation: inputs side by side, each brought to the output's parameters by a table where they differ.
#include <array>

#include "operators/core/byte_tables.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

class Concatenation final : public Kernel {
 public:
  Concatenation(const Step& step, const CoreSet& cores) : lookup_(cores.lookup()) {
    const Operand& out = step.output();
    const int64_t axis = step.integer("axis", 0, out.rank() - 1);
    const std::vector<int64_t>& tables = step.list("tables");
    require(tables.size() == step.inputs.size(), "one table number per input is needed");
    const std::vector<int64_t> target = byte_strides(out);
    int64_t begin = 0;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      Operand in = step.input(i);
      // A table turns bytes of one type into those of another.
      if (tables[i] < 0 || !is_8bit(in.type) || !is_8bit(out.type)) require_same_type(in, out);
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
      if (tables[i] >= 0) {
        parts_.back().table = static_cast<int>(tables_.size());
        tables_.push_back(read_byte_table(step, tables[i]));
        require(parts_.back().copy.transforms(), "no contiguous pieces");
      }
    }
    require(begin == out.shape[axis], "the inputs do not fill the output");
  }

  void run(const Run& run) const override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      if (part.table < 0) {
        part.copy.run(run.inputs[i], run.outputs[0], run.pool);
        continue;
      }
      const uint8_t* table = tables_[part.table].data();
      part.copy.transform(
          run.inputs[i], run.outputs[0], run.pool,
          [&](const uint8_t* source, uint8_t* target, int64_t bytes) { lookup_(table, source, target, bytes); });
    }
  }
  std::string note() const override { return tables_.empty() ? "strided copies" : "strided copies, lookup tables"; }

 private:
  struct Part {
    StridedCopy copy;
    int table;
  };

  Lookup lookup_;
  std::vector<Part> parts_;
  std::vector<std::array<uint8_t, 256>> tables_;
};

std::unique_ptr<Kernel> make_concatenation(const Step& step, const CoreSet& cores) {
  return std::make_unique<Concatenation>(step, cores);
}

BITTRUE_OPERATOR(concatenation, make_concatenation)

}  // namespace
}  // namespace bittrue
