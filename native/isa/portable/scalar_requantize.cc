#include "isa/portable/scalar_requantize.h"

#include "isa/cores.h"

namespace bittrue::portable {

uint8_t requantize_one(const rules::Requantize& requantize, int32_t acc, int64_t column) {
  return static_cast<uint8_t>(rules::requantize(requantize, acc, static_cast<size_t>(column)));
}

double real_multiplier(rules::RescaleRule rule, const rules::Multiplier& m) {
  const int point = rules::traits(rule).point;
  return point == 0 ? m.factor : std::ldexp(static_cast<double>(m.multiplier), m.exponent - point);
}

const rules::Requantize& requantize_of(const MatmulSpec& spec) {
  static const rules::Requantize unused = [] {
    rules::Requantize result;
    result.rescale = rules::RescaleRule::binary32_multiply_even;  // takes accumulators as they are
    result.multipliers.resize(1);
    return result;
  }();
  return spec.sums ? unused : spec.requantize;
}

const rules::Requantize* copy(const rules::Requantize& requantize) { return new rules::Requantize(requantize); }

void release(const rules::Requantize* requantize) { delete requantize; }

}  // namespace bittrue::portable
