// One step of a plan as kernels see it when they are made: names, integers and arrays, nothing of Python.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/type.h"
#include "rules/requantize.h"

namespace bittrue {

// A kernel cannot be made from this step. Factories throw it (or return null) when there is no native twin, or when the
// plan's numbers do not fit its tensors; the step then runs on the reference.
struct NoKernel : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A prepared array of the plan, in C order. Borrowed: valid while the program is being built.
struct Array {
  Type type = Type::other;
  std::vector<int64_t> shape;
  const void* data = nullptr;
  int64_t count = 0;

  // Element i as an integer; NoKernel for floating types, and for what an int64_t cannot hold.
  int64_t integer(int64_t i) const;
  // Element i as binary64; NoKernel for integer types.
  double real(int64_t i) const;
};

// One operand: its type and shape, and its value in the plan's own type (not flipped) when it is a constant.
struct Operand {
  Type type = Type::other;
  std::vector<int64_t> shape;
  int64_t elements = 0;
  const void* constant = nullptr;
  // Bytes from one row of the last axis to the next. Larger than the row when the operand is a part of a wider tensor.
  int64_t row_stride = 0;

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t bytes() const { return elements * type_bytes(type); }
  int64_t row_bytes() const { return (shape.empty() ? 1 : shape.back()) * type_bytes(type); }
  bool dense() const { return row_stride == row_bytes(); }
  // The constant's elements as integers, in the plan's own values. NoKernel when it is no integer constant.
  std::vector<int64_t> integers() const;
};

struct Step {
  std::string name;  // operator stem
  std::map<std::string, std::string> rules;
  std::map<std::string, std::vector<int64_t>> integers;
  std::map<std::string, double> reals;
  std::map<std::string, std::string> texts;  // integers of 2^63 and more, too
  std::map<std::string, Array> arrays;
  std::vector<const Operand*> inputs;  // null where absent
  std::vector<const Operand*> outputs;
  bool bounded = false;  // the plan proved |acc| <= magnitude
  int64_t magnitude = std::numeric_limits<int64_t>::max();
  bool wraps = true;  // the accumulator's register is narrower than `magnitude`
  int64_t work = 0;
  // A step that a pass moved into this one: an addition of this step's result and its last input, done block by block
  // while the result is in cache, which has no memory otherwise. Its output is this step's.
  std::shared_ptr<Step> then;

  // Copies are made in one place, for many files.
  Step();
  Step(const Step&);
  Step(Step&&) noexcept;
  Step& operator=(const Step&);
  Step& operator=(Step&&) noexcept;
  ~Step();

  // All of these throw NoKernel when the plan does not give what is asked for. They are cold, and so is what is sure to
  // call them: code that makes kernels is compiled for size, in half the time (CONTRIBUTING.md, "Short builds").
  [[gnu::cold]] int64_t integer(const char* key) const;
  // A number, whether the plan wrote it as a real one or as an integer.
  [[gnu::cold]] double real(const char* key) const;
  // An integer that must lie in [low, high].
  [[gnu::cold]] int64_t integer(const char* key, int64_t low, int64_t high) const;
  [[gnu::cold]] const std::vector<int64_t>& list(const char* key) const;
  [[gnu::cold]] const std::string& text(const char* key) const;
  [[gnu::cold]] const std::string& rule(const char* slot) const;
  [[gnu::cold]] const Array& array(const std::string& key) const;
  bool has_array(const std::string& key) const { return arrays.count(key) != 0; }
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  [[gnu::cold]] const Operand& input(size_t i) const;
  [[gnu::cold]] const Operand& output(size_t i = 0) const;

  // The slots rescale and store with the arrays `<prefix>multiplier`, `<prefix>exponent` or `<prefix>factor`, the
  // parameters output_zero_point, low and high, and the bound. `columns` is what per-column arrays must hold.
  [[gnu::cold]] rules::Requantize requantize(int64_t columns, const std::string& prefix = "") const;
  // One prepared multiplier, for rules other than the final one.
  [[gnu::cold]] rules::Multiplier multiplier(const std::string& prefix) const;
  [[gnu::cold]] rules::RescaleRule rescale_rule(const char* slot = "rescale") const;
};

[[noreturn, gnu::cold]] void no_kernel(const char* what);
// Throws NoKernel unless `condition`: factories state what they rely on.
inline void require(bool condition, const char* what) {
  if (!condition) no_kernel(what);
}

}  // namespace bittrue
