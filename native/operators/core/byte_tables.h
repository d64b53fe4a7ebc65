// Rows of 256 entries that bring stored bytes to another scale.
#pragma once

#include <array>
#include <cstdint>

#include "core/kernel.h"

namespace bittrue {

// Row `number` of the plan's array `tables`, from stored byte to stored byte of the output's type.
inline std::array<uint8_t, 256> read_byte_table(const Step& step, int64_t number) {
  const Array& tables = step.array("tables");
  const Type type = step.output().type;
  require(is_8bit(type) && tables.shape.size() == 2 && tables.shape[1] == 256 && number < tables.shape[0],
          "the table does not fit");
  require(step.integer("low") == -flip_of(type), "the table begins elsewhere");
  std::array<uint8_t, 256> table;
  for (int q = 0; q < 256; ++q) table[q] = static_cast<uint8_t>(tables.integer(number * 256 + q) + flip_of(type));
  return table;
}

}  // namespace bittrue
