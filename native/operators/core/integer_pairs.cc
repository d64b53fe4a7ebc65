#include "operators/core/integer_pairs.h"

#include <algorithm>

#include "operators/core/any_type.h"

namespace bittrue {

std::unique_ptr<Kernel> make_integer_pairs(const Step& step, IntegerPairs function) {
  const Type type = step.input(0).type;
  require(is_integer(type) && step.input(1).type == type && step.output().type == type,
          "no native kernel for these types");
  const auto bytes = static_cast<size_t>(type_bytes(type));
  // Shared, as what is held is no copy of this one.
  const auto block = [reader = AnyReader(type), writer = IntegerWriter(type),
                      one = std::make_shared<const IntegerPairs>(std::move(function))](const uint8_t* const* in,
                                                                                       uint8_t* out, int64_t count) {
    constexpr int64_t kPart = 512;
    int64_t first[kPart], second[kPart];
    bool all = true;
    for (int64_t i = 0; i < count; i += kPart) {
      const int64_t part = std::min(kPart, count - i), place = i * reader.bytes();
      reader.integers(in[0] + place, first, part);
      reader.integers(in[1] + place, second, part);
      all &= (*one)(first, second, part);
      writer.store(first, out + place, part);
    }
    return all;
  };
  return make_checked_blocks(step, {bytes, bytes}, bytes, CheckedBlockFunction(block));
}

}  // namespace bittrue
