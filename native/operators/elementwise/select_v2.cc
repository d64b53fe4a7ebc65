// select_v2: one of two elements, each brought to the output's parameters by a table where they differ.
#include <algorithm>

#include "operators/core/byte_tables.h"
#include "operators/core/registry.h"

namespace bittrue {

std::unique_ptr<Kernel> make_select(const Step& step, const CoreSet& cores);

namespace {

class ByteWhere final : public Kernel {
 public:
  ByteWhere(const Step& step, const CoreSet& cores) : select_(make_select(step, cores)), lookup_(cores.lookup()) {
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

}  // namespace

std::unique_ptr<Kernel> make_select_v2(const Step& step, const CoreSet& cores) {
  require(step.inputs.size() == 3, "scales are known while running only");
  if (!step.has_array("tables")) return make_select(step, cores);
  return std::make_unique<ByteWhere>(step, cores);
}

BITTRUE_OPERATOR(select_v2, make_select_v2)

}  // namespace bittrue
