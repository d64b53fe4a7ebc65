// reshape and its kin: the same elements in the same order; bitcast: the same bytes.
#include <cstring>

#include "core/kernel.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

class Copy final : public Kernel {
 public:
  explicit Copy(const Step& step) : bytes_(step.output().bytes()) {
    require(step.input(0).type == step.output().type && step.input(0).elements == step.output().elements,
            "both sides must hold the same elements");
    require(step.input(0).dense() && step.output().dense(), "both sides must be dense");
  }

  void run(const Run& run) const override {
    if (run.inputs[0] != run.outputs[0]) std::memcpy(run.outputs[0], run.inputs[0], static_cast<size_t>(bytes_));
  }
  std::string note() const override { return "copy"; }

 private:
  int64_t bytes_;
};

// 8-bit integers are stored unsigned, which bytes of other types are not.
class Bitcast final : public Kernel {
 public:
  explicit Bitcast(const Step& step)
      : bytes_(step.output().bytes()), flip_(flip_of(step.input(0).type) ^ flip_of(step.output().type)) {
    const Operand &in = step.input(0), &out = step.output();
    for (const Operand* operand : {&in, &out}) {
      require(
          operand->type != Type::s4 && operand->type != Type::s2 && type_bytes(operand->type) > 0 && operand->dense(),
          "no native kernel for these types");
    }
    require(in.bytes() == out.bytes(), "both sides must hold the same bytes");
  }

  void run(const Run& run) const override {
    if (run.inputs[0] != run.outputs[0]) std::memcpy(run.outputs[0], run.inputs[0], static_cast<size_t>(bytes_));
    for (int64_t i = 0; flip_ != 0 && i < bytes_; ++i) run.outputs[0][i] ^= static_cast<uint8_t>(flip_);
  }
  std::string note() const override { return "copy"; }

 private:
  int64_t bytes_;
  int flip_;
};

std::unique_ptr<Kernel> make_bitcast(const Step& step, const CoreSet&) { return std::make_unique<Bitcast>(step); }

std::unique_ptr<Kernel> make_copy(const Step& step, const CoreSet&) { return std::make_unique<Copy>(step); }

BITTRUE_OPERATOR(bitcast, make_bitcast)
BITTRUE_OPERATOR(expand_dims, make_copy)
BITTRUE_OPERATOR(reshape, make_copy)
BITTRUE_OPERATOR(squeeze, make_copy)

}  // namespace
}  // namespace bittrue
