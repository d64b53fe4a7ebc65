// reshape and its kin: the same elements in the same order.
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

std::unique_ptr<Kernel> make_copy(const Step& step, const CoreSet&) { return std::make_unique<Copy>(step); }

BITTRUE_OPERATOR(expand_dims, make_copy)
BITTRUE_OPERATOR(reshape, make_copy)
BITTRUE_OPERATOR(squeeze, make_copy)

}  // namespace
}  // namespace bittrue
