#include "core/written.h"

#include <cstring>
#include <stdexcept>
#include <string>

namespace bittrue {
namespace {

// Calls `row(first byte, bytes)` for every piece of a tensor's memory.
template <typename Row>
void for_rows(const TensorSpec& tensor, const Row& row) {
  const Operand& operand = tensor.operand;
  if (tensor.home != Home::arena || operand.elements == 0) return;
  if (operand.dense()) return row(tensor.offset, operand.bytes());
  const int64_t rows = operand.bytes() / operand.row_bytes();
  for (int64_t r = 0; r < rows; ++r) row(tensor.offset + r * operand.row_stride, operand.row_bytes());
}

}  // namespace

void check_written(const std::vector<TensorSpec>& tensors, const std::vector<ProgramStep>& steps, int64_t arena) {
  // One byte per byte, 1 where something has been written.
  std::vector<uint8_t> written(static_cast<size_t>(arena), 0);
  const auto write = [&](const TensorSpec& tensor) {
    for_rows(tensor, [&](int64_t first, int64_t bytes) { std::memset(&written[first], 1, static_cast<size_t>(bytes)); });
  };
  const auto read = [&](const TensorSpec& tensor, const std::string& who) {
    for_rows(tensor, [&](int64_t first, int64_t bytes) {
      if (std::memchr(&written[first], 0, static_cast<size_t>(bytes)) != nullptr) {
        throw std::invalid_argument(who + " reads memory that nothing has written");
      }
    });
  };
  for (const TensorSpec& tensor : tensors) {
    if (tensor.given) write(tensor);
  }
  for (size_t s = 0; s < steps.size(); ++s) {
    for (const int i : steps[s].inputs) {
      if (i >= 0) read(tensors[i], "step " + std::to_string(s));
    }
    for (const int i : steps[s].outputs) write(tensors[i]);
  }
  for (const TensorSpec& tensor : tensors) {
    if (tensor.wanted) read(tensor, "a result");
  }
}

}  // namespace bittrue
