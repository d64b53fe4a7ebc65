// The cores of one instruction set, completed by the simpler ones below it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "isa/cores.h"

namespace bittrue {

class CoreSet {
 public:
  // `isa` names one of `available()`; throws std::invalid_argument otherwise.
  explicit CoreSet(const std::string& isa);

  // Instruction sets that this processor can run, the fastest first. The last one is "portable".
  static std::vector<std::string> available();
  // Every instruction set that was compiled in, whether or not this processor has it.
  static std::vector<std::string> compiled();

  const char* isa() const { return chain_.front()->isa; }
  // Multiply-adds of bytes in a nanosecond, about, where the fastest set does so many: whether threads are worth it.
  int64_t byte_rate(int64_t fastest) const { return std::max<int64_t>(1, fastest / chain_.front()->byte_times); }
  // All cores as (instruction set that implements it, core).
  std::vector<std::pair<std::string, std::string>> rows() const;

#define BITTRUE_FACTORY(name, Core, Spec) [[gnu::cold]] std::unique_ptr<Core> name(const Spec& spec) const;
#define BITTRUE_FUNCTION(name, Type) [[gnu::cold]] Type name() const;
#define BITTRUE_OBJECT(name, Type) [[gnu::cold]] const Type& name() const;
#include "isa/core_list.inc"

 private:
  std::vector<const Cores*> chain_;  // from the chosen set down to portable
};

}  // namespace bittrue
