// embedding_lookup: rows of a table by position. Positions outside of the table have no defined result.
#include <cstring>

#include "core/kernel.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

class EmbeddingLookup final : public Kernel {
 public:
  explicit EmbeddingLookup(const Step& step) {
    const Operand &positions = step.input(0), &table = step.input(1), &out = step.output();
    require(positions.type == Type::s32 && positions.dense() && table.dense() && out.dense(), "positions are 32-bit");
    count_ = positions.elements;
    rows_ = step.integer("rows", 1, int64_t{1} << 31), columns_ = step.integer("columns", 0, int64_t{1} << 40);
    require(table.rank() >= 2 && table.shape[0] == rows_ && table.elements == rows_ * columns_ &&
                out.elements == count_ * columns_,
            "the shapes do not fit");
    const std::string& form = step.text("form");
    if (form == "copy") {
      require(table.type == out.type && type_bytes(table.type) > 0, "both sides must have one type");
      bytes_ = columns_ * type_bytes(table.type);
      return;
    }
    require(form == "real" && out.type == Type::f32 && type_bytes(table.type) == 1, "no native form");
    flip_ = flip_of(table.type);
    per_byte_ = step.integer("per_byte", 1, 4), enlarged_ = static_cast<float>(step.integer("enlarged", 1, 64));
    const Array& scales = step.array("scales");
    require(scales.count == 1 || scales.count == rows_, "one scale for all rows or one per row is needed");
    for (int64_t i = 0; i < scales.count; ++i) scales_.push_back(static_cast<float>(scales.real(i)));
  }

  void run(const Run& run) const override {
    const auto* positions = reinterpret_cast<const int32_t*>(run.inputs[0]);
    for (int64_t i = 0; i < count_; ++i) {
      if (positions[i] < 0 || positions[i] >= rows_) throw Undefined();
    }
    if (scales_.empty()) {
      for (int64_t i = 0; i < count_ && bytes_ != 0; ++i) {
        std::memcpy(run.outputs[0] + i * bytes_, run.inputs[1] + positions[i] * bytes_, static_cast<size_t>(bytes_));
      }
      return;
    }
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    for (int64_t i = 0; i < count_; ++i, out += columns_) {
      run.check();
      const float scale = scales_[scales_.size() == 1 ? 0 : static_cast<size_t>(positions[i])];
      const uint8_t* row = run.inputs[1] + positions[i] * columns_ / per_byte_ * per_byte_;
      for (int64_t k = 0; k < columns_; ++k) {
        const auto value = static_cast<int8_t>(static_cast<uint8_t>(row[k] - flip_));
        out[k] = static_cast<float>(value) * enlarged_ * scale;
      }
    }
  }
  std::string note() const override { return scales_.empty() ? "rows" : "rows, multiplied"; }

 private:
  int64_t count_, rows_, columns_, bytes_ = 0, per_byte_ = 1;
  int flip_ = 0;
  float enlarged_ = 1;
  std::vector<float> scales_;  // none: rows are copied
};

}  // namespace

std::unique_ptr<Kernel> make_embedding_lookup(const Step& step, const CoreSet&) {
  return std::make_unique<EmbeddingLookup>(step);
}

BITTRUE_OPERATOR(embedding_lookup, make_embedding_lookup)

}  // namespace bittrue
