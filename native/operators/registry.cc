#include "operators/registry.h"

#include <cstring>

namespace bittrue {

#define BITTRUE_OPERATOR(stem, factory) \
  std::unique_ptr<Kernel> factory(const Step& step, const CoreSet& cores);
#include "operators/operator_list.inc"
#undef BITTRUE_OPERATOR

namespace {

struct OperatorRow {
  const char* stem;
  Factory factory;
};

constexpr OperatorRow kOperators[] = {
#define BITTRUE_OPERATOR(stem, factory) {#stem, factory},
#include "operators/operator_list.inc"
#undef BITTRUE_OPERATOR
};

}  // namespace

Factory find_factory(const std::string& stem) {
  for (const OperatorRow& row : kOperators) {
    if (stem == row.stem) return row.factory;
  }
  return nullptr;
}

std::vector<std::string> native_operators() {
  std::vector<std::string> stems;
  for (const OperatorRow& row : kOperators) stems.emplace_back(row.stem);
  return stems;
}

}  // namespace bittrue
