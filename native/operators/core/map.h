// Functions of one stored integer: 8-bit inputs by a table with one entry per value, wider ones one by one.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "core/kernel.h"
#include "operators/core/blocks.h"

namespace bittrue {

// The plan's value of a stored byte.
inline int64_t value_of_byte(Type type, int byte) {
  if (type == Type::s4 || type == Type::s2) return static_cast<int8_t>(byte);
  return byte - flip_of(type);
}

inline bool is_byte(Type type) { return is_8bit(type) || type == Type::s4 || type == Type::s2; }

// out = table[in] for bytes on both sides; `table` is indexed by stored bytes and holds stored bytes.
[[gnu::cold]] std::unique_ptr<Kernel> make_lookup(const Step& step, const CoreSet& cores,
                                                  const std::array<uint8_t, 256>& table);

template <class Out>
class WideTable final : public BlockKernel {
 public:
  WideTable(const Step& step, const std::array<Out, 256>& table) : BlockKernel(step, 1), table_(table) {}

  std::string note() const override { return "lookup table"; }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    auto* target = reinterpret_cast<Out*>(out);
    for (int64_t i = 0; i < count; ++i) target[i] = table_[in[0][i]];
  }

  std::array<Out, 256> table_;
};

// Function: Out operator()(In) const, on stored elements.
template <class In, class Out, class Function>
std::unique_ptr<Kernel> make_map(const Step& step, const Function& function) {
  const auto block = [function](const uint8_t* const* in, uint8_t* out, int64_t count) {
    const auto* source = reinterpret_cast<const In*>(in[0]);
    auto* target = reinterpret_cast<Out*>(out);
    const OwnFunction<Function> own = function;
    for (int64_t i = 0; i < count; ++i) target[i] = own(source[i]);
  };
  return make_blocks(step, {sizeof(In)}, sizeof(Out), BlockFunction(block));
}

// Stored elements of 1, 2, 4 or 8 bytes as integers, the first kind without a sign, and the low bits of integers.
void load_integers(const uint8_t* in, int64_t bytes, int64_t* values, int64_t count);
void store_low_bits(const int64_t* values, int64_t bytes, uint8_t* out, int64_t count);

// The kernel of a function that works on the plan's own values where they lie; results wrap to the output's width.
using IntegersFunction = HeldFunction<void(int64_t* values, int64_t count)>;
[[gnu::cold]] std::unique_ptr<Kernel> make_integers_map(const Step& step, const CoreSet& cores,
                                                        IntegersFunction function);

// The same of int64_t f(int64_t).
template <class Function>
std::unique_ptr<Kernel> make_integer_map(const Step& step, const CoreSet& cores, const Function& f) {
  return make_integers_map(step, cores, IntegersFunction([f](int64_t* values, int64_t count) {
                             for (int64_t i = 0; i < count; ++i) values[i] = f(values[i]);
                           }));
}

}  // namespace bittrue
