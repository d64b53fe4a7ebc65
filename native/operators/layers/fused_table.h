// A bytewise step that a pass moved into the layer before it: results are looked up while they are still in cache.
#pragma once

#include <cstring>
#include <string>

#include "core/core_set.h"
#include "core/step.h"

namespace bittrue {

class FusedTable {
 public:
  // Takes the step's array `fused_table` when there is one: 256 stored results by stored input.
  FusedTable(const Step& step, const CoreSet& cores) {
    if (!step.has_array("fused_table")) return;
    const Array& array = step.array("fused_table");
    require(array.type == Type::u8 && array.count == 256, "a table has 256 bytes");
    std::memcpy(table_, array.data, sizeof(table_));
    lookup_ = cores.lookup();
  }

  void apply(uint8_t* rows, int64_t stride, int64_t count, int64_t bytes) const {
    if (lookup_ == nullptr) return;
    if (stride == bytes) {
      lookup_(table_, rows, rows, count * bytes);
      return;
    }
    for (int64_t r = 0; r < count; ++r) lookup_(table_, rows + r * stride, rows + r * stride, bytes);
  }

  std::string note() const { return lookup_ == nullptr ? "" : ", table fused"; }

 private:
  uint8_t table_[256] = {};
  Lookup lookup_ = nullptr;
};

}  // namespace bittrue
