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
  const auto count = static_cast<int64_t>(steps.size());
  const auto placed = [&](int i) { return i >= 0 && tensors[i].home == Home::arena; };
  // The last use of each root: then its memory is free. Inputs are written before step 0, results are read after the last.
  std::vector<int64_t> last(tensors.size(), -1);
  for (int64_t s = 0; s < count; ++s) {
    for (const auto* list : {&steps[s].inputs, &steps[s].outputs}) {
      for (const int i : *list) {
        if (placed(i)) last[tensors[i].root] = s;
      }
    }
  }
  std::vector<std::vector<int>> ending(steps.size() + 2);  // by step, from the one before the first
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].wanted && placed(static_cast<int>(i))) last[tensors[i].root] = count;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (placed(static_cast<int>(i))) ending[last[tensors[i].root] + 1].push_back(static_cast<int>(i));
  }

  // One byte per byte, 1 where a tensor in use has been written.
  std::vector<uint8_t> written(static_cast<size_t>(arena), 0);
  const auto mark = [&](int i, int value) {
    for_rows(tensors[i],
             [&](int64_t first, int64_t bytes) { std::memset(&written[first], value, static_cast<size_t>(bytes)); });
  };
  const auto none_is = [&](int i, int value, const std::string& who, const char* fault) {
    for_rows(tensors[i], [&](int64_t first, int64_t bytes) {
      if (std::memchr(&written[first], value, static_cast<size_t>(bytes)) != nullptr) {
        throw std::invalid_argument(who + fault);
      }
    });
  };
  const auto write = [&](int i, const std::string& who) {
    none_is(i, 1, who, " writes over a tensor that is still in use");
    mark(i, 1);
  };
  const auto read = [&](int i, const std::string& who) {
    none_is(i, 0, who, " reads memory that nothing has written");
  };
  const auto end = [&](int64_t step) {
    for (const int i : ending[step + 1]) mark(i, 0);
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].given) write(static_cast<int>(i), "an input");
  }
  end(-1);
  for (int64_t s = 0; s < count; ++s) {
    const std::string who = "step " + std::to_string(s);
    // What it joins may lie in the result already, and stays there.
    std::vector<int> joined;
    for (const int i : steps[s].inputs) {
      if (!placed(i)) continue;
      read(i, who);
      for (const int result : steps[s].outputs) {
        if (placed(result) && tensors[i].root == tensors[result].root) joined.push_back(i);
      }
    }
    for (const int i : joined) mark(i, 0);
    for (const int i : steps[s].outputs) write(i, who);
    for (const int i : joined) mark(i, 1);
    end(s);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].wanted) read(static_cast<int>(i), "a result");
  }
}

}  // namespace bittrue
