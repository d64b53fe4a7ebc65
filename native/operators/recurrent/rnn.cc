// h = F(x W^T + h R^T + wb + rb) over whole sequences.
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/recurrent/sequences.h"

namespace bittrue {
namespace {

class Rnn final : public SequenceLayer {
 public:
  Rnn(const Step& step, const CoreSet& cores) : SequenceLayer(step, 1, false) {
    require(step.rule("recurrence") == "binary32_polynomials" && step.rule("real_product") == "binary32_fused_blocks",
            "no native rule for these slots");
    for (int64_t d = 0; d < directions_; ++d) {
      functions_.push_back(GateFunction::read(step.text("functions"), d, GatePlace::whole_layer, cores));
    }
    limited_ = step.real("clip") != 0.0;
    bias_first_ = true;
    add(make_real_projection(step, cores, part(1, 0, columns_, inputs_), false));
    add(make_real_projection(step, cores, part(2, 0, columns_, hidden_), false));
  }

 private:
  bool advance(const Advance& at) const override {
    if (!product(at, 1, at.hidden, Addend(), at.new_hidden)) return false;
    const int64_t count = batch_ * hidden_;
    for (int64_t i = 0; i < count; ++i) at.new_hidden[i] += at.first[i];
    for (int64_t b = 0; limited_ && b < batch_; ++b) enter(at.new_hidden + b * hidden_, nullptr);
    functions_[static_cast<size_t>(at.direction)].apply(at.new_hidden, count);
    return all_finite(at.new_hidden, count);
  }

  std::vector<GateFunction> functions_;
  bool limited_;
};

std::unique_ptr<Kernel> make_rnn(const Step& step, const CoreSet& cores) {
  require(step.rules.count("recurrence") != 0, "a tensor of weights per direction has no native twin");
  return std::make_unique<Rnn>(step, cores);
}

BITTRUE_OPERATOR(rnn, make_rnn)

}  // namespace
}  // namespace bittrue
