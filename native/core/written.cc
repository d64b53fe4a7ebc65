#include "core/written.h"

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

// One bit per byte of memory.
class Bits {
 public:
  explicit Bits(int64_t count) : words_(static_cast<size_t>((count + 63) / 64)) {}

  void set(int64_t first, int64_t count, bool value) {
    for_words(first, count, [value](uint64_t& word, uint64_t mask) {
      word = value ? word | mask : word & ~mask;
      return true;
    });
  }

  // Whether all of them have this value.
  bool all_are(bool value, int64_t first, int64_t count) {
    return for_words(first, count,
                     [value](uint64_t word, uint64_t mask) { return ((value ? ~word : word) & mask) == 0; });
  }

 private:
  // Calls `each` with every word and the bits of it that are meant, until it returns false; whether it never did.
  template <typename Each>
  bool for_words(int64_t first, int64_t count, const Each& each) {
    const int64_t end = first + count;
    for (int64_t i = first / 64; i * 64 < end; ++i) {
      uint64_t mask = ~uint64_t{0};
      if (i * 64 < first) mask <<= first - i * 64;
      if (end - i * 64 < 64) mask &= ~uint64_t{0} >> (64 - (end - i * 64));
      if (!each(words_[static_cast<size_t>(i)], mask)) return false;
    }
    return true;
  }

  std::vector<uint64_t> words_;
};

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

  // Set where a tensor in use has been written.
  Bits written(arena);
  const auto mark = [&](int i, bool value) {
    for_rows(tensors[i], [&](int64_t first, int64_t bytes) { written.set(first, bytes, value); });
  };
  const auto all_are = [&](int i, bool value, const std::string& who, const char* fault) {
    for_rows(tensors[i], [&](int64_t first, int64_t bytes) {
      if (!written.all_are(value, first, bytes)) throw std::invalid_argument(who + fault);
    });
  };
  const auto write = [&](int i, const std::string& who) {
    all_are(i, false, who, " writes over a tensor that is still in use");
    mark(i, true);
  };
  const auto read = [&](int i, const std::string& who) {
    all_are(i, true, who, " reads memory that nothing has written");
  };
  const auto end = [&](int64_t step) {
    for (const int i : ending[step + 1]) mark(i, false);
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
    for (const int i : joined) mark(i, false);
    for (const int i : steps[s].outputs) write(i, who);
    for (const int i : joined) mark(i, true);
    end(s);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].wanted) read(static_cast<int>(i), "a result");
  }
}

}  // namespace bittrue
