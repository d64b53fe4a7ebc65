// ban_repeats: scores of tokens that would end a group that is there already become minus infinity.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/kernel.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

class BannedRepeats final : public Kernel {
 public:
  explicit BannedRepeats(const Step& step) : size_(step.integer("size", 1, int64_t{1} << 31)) {
    const Operand &tokens = step.input(0), &scores = step.input(1), &out = step.output();
    require(tokens.type == Type::s64 && scores.type == Type::f32 && out.type == Type::f32 && tokens.dense() &&
                scores.dense() && out.dense() && tokens.rank() == 2 && scores.rank() == 2,
            "no native kernel for these types");
    rows_ = tokens.shape[0], length_ = tokens.shape[1], known_ = scores.shape[1];
    require(scores.shape[0] == rows_ && out.shape == scores.shape, "the shapes do not fit");
  }
  std::string note() const override { return "row by row"; }

  void run(const Run& run) const override {
    const auto* tokens = reinterpret_cast<const int64_t*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    std::memcpy(out, run.inputs[1], static_cast<size_t>(rows_ * known_) * 4);
    for (int64_t row = 0; row < rows_; ++row, tokens += length_, out += known_) {
      run.check();
      const int64_t* last = tokens + length_ - size_ + 1;
      for (int64_t i = 0; i + size_ <= length_; ++i) {
        if (!std::equal(tokens + i, tokens + i + size_ - 1, last)) continue;
        const int64_t end = tokens[i + size_ - 1];
        // What has no score is the reference's to tell.
        if (end < 0 || end >= known_) throw Undefined();
        out[end] = -std::numeric_limits<float>::infinity();
      }
    }
  }

 private:
  int64_t size_, rows_ = 0, length_ = 0, known_ = 0;
};

std::unique_ptr<Kernel> make_ban_repeats(const Step& step, const CoreSet&) {
  return std::make_unique<BannedRepeats>(step);
}

BITTRUE_OPERATOR(ban_repeats, make_ban_repeats)

}  // namespace
}  // namespace bittrue
