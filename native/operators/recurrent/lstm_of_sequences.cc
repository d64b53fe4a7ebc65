// Long short-term memory over whole sequences, with the weights of all gates in one tensor: i, o, f, c.
#include "operators/core/finite.h"
#include "operators/recurrent/sequences.h"

namespace bittrue {
namespace {

class LstmOfSequences final : public SequenceLayer {
 public:
  LstmOfSequences(const Step& step, const CoreSet& cores) : SequenceLayer(step, 4, true) {
    require(step.rule("recurrence") == "binary32_polynomials", "no native rule for this slot");
    const std::string& functions = step.text("functions");
    for (int64_t d = 0; d < directions_; ++d) {
      for (int64_t i = 0; i < 3; ++i) {
        functions_.push_back(
            GateFunction::read(functions, 3 * d + i, i == 2 ? GatePlace::cell : GatePlace::gate, cores));
      }
    }
    input_forget_ = step.integer("input_forget", 0, 1) != 0;
    peepholes_ = step.has_input(7);
    require(!peepholes_ || (step.input(7).type == Type::f32 && step.input(7).dense() &&
                            step.input(7).elements == directions_ * 3 * hidden_),
            "an operand has another form");
    const ProjectionPart of_x = part(1, 0, columns_, inputs_), of_h = part(2, 0, columns_, hidden_);
    if (step.rules.count("dynamic_range") != 0) {
      keep_ = step.integer("keep", 0, 1) != 0;
      add(make_quantized_projection(step, cores, of_x, 8));
      add(make_quantized_projection(step, cores, of_h, 10));
      return;
    }
    require(step.rule("real_product") == "binary32_fused_blocks", "no native rule for this slot");
    add(make_real_projection(step, cores, of_x, step.integer("packed_w", 0, 1) != 0));
    add(make_real_projection(step, cores, of_h, step.integer("packed_r", 0, 1) != 0));
  }

 private:
  bool advance(const Advance& at) const override {
    Addend first;
    first.from = at.first;
    first.down = columns_;
    if (!product(at, 1, at.hidden, first, at.gates)) return false;
    const GateFunction* functions = functions_.data() + 3 * at.direction;
    const float* peepholes =
        peepholes_ ? reinterpret_cast<const float*>(at.run->inputs[7]) + at.direction * 3 * hidden_ : nullptr;
    for (int64_t b = 0; b < batch_; ++b) {
      float *in = at.gates + b * columns_, *out = in + hidden_, *forget = out + hidden_, *candidate = forget + hidden_;
      const float* before = at.cells + b * hidden_;
      float *cell = at.new_cells + b * hidden_, *hidden = at.new_hidden + b * hidden_;
      const auto gate = [&](int64_t k, const float* seen, float* x) {
        if (seen != nullptr && peepholes != nullptr) {
          const float* weights = peepholes + k * hidden_;
          for (int64_t i = 0; i < hidden_; ++i) x[i] = x[i] + seen[i] * weights[i];
        }
        enter(x, at.bias == nullptr ? nullptr : at.bias + k * hidden_);
        functions[k == 3 ? 1 : 0].apply(x, hidden_);
      };
      gate(0, before, in);
      if (input_forget_) {
        for (int64_t i = 0; i < hidden_; ++i) forget[i] = 1.0f - in[i];
      } else {
        gate(2, before, forget);
      }
      gate(3, nullptr, candidate);
      for (int64_t i = 0; i < hidden_; ++i) {
        cell[i] = forget[i] * before[i] + in[i] * candidate[i];
        hidden[i] = cell[i];
      }
      functions[2].apply(hidden, hidden_);
      gate(1, cell, out);
      for (int64_t i = 0; i < hidden_; ++i) {
        hidden[i] = hidden[i] * out[i];
      }
    }
    return all_finite(at.new_hidden, batch_ * hidden_) && all_finite(at.new_cells, batch_ * hidden_);
  }

  std::vector<GateFunction> functions_;
  bool input_forget_, peepholes_;
};

}  // namespace

std::unique_ptr<Kernel> make_lstm_of_sequences(const Step& step, const CoreSet& cores) {
  return std::make_unique<LstmOfSequences>(step, cores);
}

}  // namespace bittrue
