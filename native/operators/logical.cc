// logical_and, logical_or and logical_not of truth values, bit by bit: what a byte other than 0 and 1 becomes shows.
#include "operators/map.h"
#include "operators/zip.h"

namespace bittrue {
namespace {

bool truths(const Step& step, size_t inputs) {
  bool all = step.output().type == Type::boolean;
  for (size_t i = 0; i < inputs; ++i) all = all && step.input(i).type == Type::boolean;
  return all;
}

}  // namespace

std::unique_ptr<Kernel> make_logical_and(const Step& step, const CoreSet&) {
  if (!truths(step, 2)) return nullptr;
  return make_zip<uint8_t, uint8_t>(step, [](uint8_t a, uint8_t b) -> uint8_t { return a & b; });
}

std::unique_ptr<Kernel> make_logical_or(const Step& step, const CoreSet&) {
  if (!truths(step, 2)) return nullptr;
  return make_zip<uint8_t, uint8_t>(step, [](uint8_t a, uint8_t b) -> uint8_t { return a | b; });
}

std::unique_ptr<Kernel> make_logical_not(const Step& step, const CoreSet&) {
  if (!truths(step, 1)) return nullptr;
  return make_map<uint8_t, uint8_t>(step, [](uint8_t a) -> uint8_t { return a ^ 1; });
}

}  // namespace bittrue
