// Rows of a table by position, which become real numbers. Positions outside of the table have no defined result.
#include "operators/movement/embedding_lookup.h"

namespace bittrue {
namespace {

class EmbeddingLookup final : public Kernel {
 public:
  explicit EmbeddingLookup(const Step& step) {
    const Operand &positions = step.input(1), &table = step.input(0), &out = step.output();
    require(positions.type == Type::s32 && positions.dense() && table.dense() && out.dense(), "positions are 32-bit");
    count_ = positions.elements;
    rows_ = step.integer("rows", 1, int64_t{1} << 31), columns_ = step.integer("columns", 0, int64_t{1} << 40);
    require(table.rank() >= 2 && table.shape[0] == rows_ && table.elements == rows_ * columns_ &&
                out.elements == count_ * columns_,
            "the shapes do not fit");
    require(out.type == Type::f32 && type_bytes(table.type) == 1, "no native form");
    flip_ = flip_of(table.type);
    per_byte_ = step.integer("per_byte", 1, 4), enlarged_ = static_cast<float>(step.integer("enlarged", 1, 64));
    const Array& scales = step.array("scales");
    require(scales.count == 1 || scales.count == rows_, "one scale for all rows or one per row is needed");
    for (int64_t i = 0; i < scales.count; ++i) scales_.push_back(static_cast<float>(scales.real(i)));
  }

  void run(const Run& run) const override {
    const auto* positions = reinterpret_cast<const int32_t*>(run.inputs[1]);
    for (int64_t i = 0; i < count_; ++i) {
      if (positions[i] < 0 || positions[i] >= rows_) throw Undefined();
    }
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    for (int64_t i = 0; i < count_; ++i, out += columns_) {
      run.check();
      const float scale = scales_[scales_.size() == 1 ? 0 : static_cast<size_t>(positions[i])];
      const uint8_t* row = run.inputs[0] + positions[i] * columns_ / per_byte_ * per_byte_;
      for (int64_t k = 0; k < columns_; ++k) {
        const auto value = static_cast<int8_t>(static_cast<uint8_t>(row[k] - flip_));
        out[k] = static_cast<float>(value) * enlarged_ * scale;
      }
    }
  }
  std::string note() const override { return "rows, multiplied"; }

 private:
  int64_t count_, rows_, columns_, per_byte_ = 1;
  int flip_ = 0;
  float enlarged_ = 1;
  std::vector<float> scales_;
};

}  // namespace

std::unique_ptr<Kernel> make_embedding_lookup(const Step& step) { return std::make_unique<EmbeddingLookup>(step); }

}  // namespace bittrue
