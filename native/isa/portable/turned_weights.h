// Weights of a product that lie by rows, turned, out of line for files of an instruction set.
#pragma once

#include <cstdint>
#include <vector>

#include "isa/cores.h"

namespace bittrue::portable {

// Bytes [rows, columns] to [columns, rows].
[[gnu::hot]] void turn(const int8_t* from, int64_t rows, int64_t columns, int8_t* to);

// For cores that pack columns: the same product with its weights by columns, valid as long as this.
class ByColumns {
 public:
  explicit ByColumns(const MatmulSpec& spec);
  const MatmulSpec& spec() const { return spec_; }

 private:
  MatmulSpec spec_;
  std::vector<int8_t> turned_;
};

}  // namespace bittrue::portable
