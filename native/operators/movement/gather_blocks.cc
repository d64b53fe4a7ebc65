// Rows of numbers of 2, 4 or 8 bits, picked by position along the first axis, with a scale and a zero point per block of the
// last one, by the rule binary32_multiply. Positions outside of the data pick zeros.
#include "operators/movement/gather_blocks.h"

#include <algorithm>

#include "core/share.h"

namespace bittrue {
namespace {

constexpr size_t kBlockScales = 2, kBlockPoints = 3;

class GatherBlocks final : public Kernel {
 public:
  explicit GatherBlocks(const Step& step)
      : bits_(step.integer("packed_bits", 0, 8) == 0 ? 8 : step.integer("packed_bits")),
        block_(step.integer("block_size", 16, int64_t{1} << 40)),
        middle_(step.integer("middle", 0, 128)) {
    const Operand &data = step.input(0), &positions = step.input(1), &scales = step.input(kBlockScales);
    const Operand& out = step.output();
    require(step.rule("dequantize") == "binary32_multiply", "no native rule for this slot");
    require(step.integer("floats", 0, 1) == 0, "no native kernel for these types");
    require(scales.type == Type::f32 && out.type == Type::f32, "no native kernel for these types");
    // Unsigned numbers of 4 bits are bytes.
    require(data.type == Type::u8 || (bits_ == 8 && (data.type == Type::s4 || data.type == Type::u4)),
            "no native kernel for these types");
    signed_ = data.type == Type::s4;
    wide_ = positions.type == Type::s64;
    require(wide_ || positions.type == Type::s32, "positions have another type");
    require(data.dense() && positions.dense() && scales.dense() && out.dense(), "all operands must be dense");
    const int rank = data.rank();
    require(rank >= 2 && step.integer("axis") == 0 && step.integer("block_axis") == rank - 1, "blocks lie elsewhere");
    require(bits_ == 2 || bits_ == 4 || bits_ == 8, "numbers of other bits");
    require(data.elements > 0, "there is nothing to pick");
    dimension_ = data.shape[0], bytes_ = data.shape[rank - 1], lines_ = data.elements / (dimension_ * bytes_);
    numbers_ = bytes_ * (8 / bits_);
    blocks_ = (numbers_ + block_ - 1) / block_;
    point_bytes_ = (blocks_ * bits_ + 7) / 8;
    count_ = positions.elements;
    require(scales.elements == dimension_ * lines_ * blocks_ && out.elements == count_ * lines_ * numbers_,
            "the shapes do not fit");
    pointed_ = step.has_input(kBlockPoints);
    if (!pointed_) return;
    const Operand& points = step.input(kBlockPoints);
    require(points.type == data.type && points.dense() && points.elements == dimension_ * lines_ * point_bytes_,
            "zero points have another form");
  }
  std::string note() const override { return "rows of blocks, multiplied"; }

  void run(const Run& run) const override {
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const int threads = run.pool.threads_for(count_ * lines_ * numbers_);
    run.pool.parallel(count_, threads, [&](int64_t i, int) {
      int64_t place = wide_ ? reinterpret_cast<const int64_t*>(run.inputs[1])[i]
                            : reinterpret_cast<const int32_t*>(run.inputs[1])[i];
      float* to = out + i * lines_ * numbers_;
      if (place < -dimension_ || place >= dimension_) {
        std::fill_n(to, lines_ * numbers_, 0.0f);
        return;
      }
      if (place < 0) place += dimension_;
      for (int64_t line = place * lines_; line < (place + 1) * lines_; ++line, to += numbers_) pick(run, line, to);
    });
  }

 private:
  int part(const uint8_t* packed, int64_t i) const {
    if (signed_) return static_cast<int8_t>(packed[i]);
    return packed[i * bits_ / 8] >> (i * bits_ % 8) & ((1 << bits_) - 1);
  }

  void pick(const Run& run, int64_t line, float* to) const {
    const uint8_t* data = run.inputs[0] + line * bytes_;
    const float* scales = reinterpret_cast<const float*>(run.inputs[kBlockScales]) + line * blocks_;
    const uint8_t* points = pointed_ ? run.inputs[kBlockPoints] + line * point_bytes_ : nullptr;
    for (int64_t b = 0; b < blocks_; ++b) {
      const auto point = static_cast<int>(points == nullptr ? middle_ : part(points, b));
      for (int64_t k = b * block_; k < std::min(numbers_, (b + 1) * block_); ++k) {
        to[k] = static_cast<float>(part(data, k) - point) * scales[b];
      }
    }
  }

  int64_t bits_, block_, middle_;
  int64_t dimension_ = 0, bytes_ = 0, lines_ = 0, numbers_ = 0, blocks_ = 0, point_bytes_ = 0, count_ = 0;
  bool wide_ = false, pointed_ = false, signed_ = false;
};

}  // namespace

std::unique_ptr<Kernel> make_gather_blocks(const Step& step) { return std::make_unique<GatherBlocks>(step); }

}  // namespace bittrue
