// Gated recurrent units over whole sequences: z, r, n.
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/recurrent/sequences.h"

namespace bittrue {
namespace {

class Gru final : public SequenceLayer {
 public:
  Gru(const Step& step, const CoreSet& cores) : SequenceLayer(step, 3, false) {
    require(step.rule("recurrence") == "binary32_polynomials" && step.rule("real_product") == "binary32_fused_blocks",
            "no native rule for these slots");
    const std::string& functions = step.text("functions");
    for (int64_t d = 0; d < directions_; ++d) {
      functions_.push_back(GateFunction::read(functions, 2 * d, GatePlace::gate, cores));
      functions_.push_back(GateFunction::read(functions, 2 * d, GatePlace::merged, cores));
      functions_.push_back(GateFunction::read(functions, 2 * d + 1, GatePlace::merged, cores));
    }
    before_ = step.integer("linear_before_reset", 0, 1) != 0;
    const bool packed = step.integer("packed_r", 0, 1) != 0;
    add(make_real_projection(step, cores, part(1, 0, columns_, inputs_), step.integer("packed_w", 0, 1) != 0));
    add(make_real_projection(step, cores, part(2, 0, 2 * hidden_, hidden_), packed));
    add(make_real_projection(step, cores, part(2, 2 * hidden_, hidden_, hidden_), packed));
  }

 private:
  // All updates and resets of a sequence lie side by side, then come all candidates of all sequences.
  bool advance(const Advance& at) const override {
    float* candidates = at.gates + batch_ * 2 * hidden_;
    Addend first;
    first.from = at.first;
    first.down = columns_;
    if (!product(at, 1, at.hidden, first, at.gates)) return false;
    const GateFunction* functions = functions_.data() + 3 * at.direction;
    const auto of = [&](const float* bias, int64_t gate) { return bias == nullptr ? nullptr : bias + gate * hidden_; };
    for (int64_t b = 0; b < batch_; ++b) {
      float *update = at.gates + b * 2 * hidden_, *reset = update + hidden_;
      enter(update, of(at.bias, 0));
      functions[0].apply(update, hidden_);
      enter(reset, of(at.bias, 1));
      functions[1].apply(reset, hidden_);
      const float* hidden = at.hidden + b * hidden_;
      for (int64_t i = 0; !before_ && i < hidden_; ++i) at.column[b * hidden_ + i] = hidden[i] * reset[i];
    }
    Addend begin;
    if (before_ && at.biases != nullptr) {
      begin.from = at.biases + columns_ + 2 * hidden_;
    } else if (!before_) {
      begin = first;
      begin.from += 2 * hidden_;
    }
    if (!product(at, 2, before_ ? at.hidden : at.column, begin, candidates)) return false;
    for (int64_t b = 0; b < batch_; ++b) {
      const float *update = at.gates + b * 2 * hidden_, *reset = update + hidden_, *hidden = at.hidden + b * hidden_;
      float *candidate = candidates + b * hidden_, *out = at.new_hidden + b * hidden_;
      if (before_) {
        const float* own = at.first + b * columns_ + 2 * hidden_;
        for (int64_t i = 0; i < hidden_; ++i) candidate[i] = own[i] + candidate[i] * reset[i];
      }
      enter(candidate, of(before_ ? at.biases : at.bias, 2));
      functions[2].apply(candidate, hidden_);
      for (int64_t i = 0; i < hidden_; ++i) {
        out[i] = (1.0f - update[i]) * candidate[i] + update[i] * hidden[i];
      }
    }
    return all_finite(at.new_hidden, batch_ * hidden_);
  }

  std::vector<GateFunction> functions_;
  bool before_;
};

std::unique_ptr<Kernel> make_gru(const Step& step, const CoreSet& cores) { return std::make_unique<Gru>(step, cores); }

BITTRUE_OPERATOR(gru, make_gru)

}  // namespace
}  // namespace bittrue
