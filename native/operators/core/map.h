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
std::unique_ptr<Kernel> make_lookup(const Step& step, const CoreSet& cores, const std::array<uint8_t, 256>& table);

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
class Map final : public BlockKernel {
 public:
  Map(const Step& step, Function function)
      : BlockKernel(step, {sizeof(In)}, sizeof(Out)), function_(std::move(function)) {}

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    const auto* source = reinterpret_cast<const In*>(in[0]);
    auto* target = reinterpret_cast<Out*>(out);
    for (int64_t i = 0; i < count; ++i) target[i] = function_(source[i]);
  }

  Function function_;
};

template <class In, class Out, class Function>
std::unique_ptr<Kernel> make_map(const Step& step, Function function) {
  return std::make_unique<Map<In, Out, Function>>(step, std::move(function));
}

namespace map_detail {

template <class In, class Function>
std::unique_ptr<Kernel> from_wide(const Step& step, const Function& f) {
  const Type to = step.output().type;
  const int flip = flip_of(to);
  if (is_byte(to)) {
    return make_map<In, uint8_t>(step, [f, flip](In q) { return static_cast<uint8_t>(f(q) + flip); });
  }
  if (to == Type::s16) return make_map<In, int16_t>(step, [f](In q) { return static_cast<int16_t>(f(q)); });
  if (to == Type::s32) return make_map<In, int32_t>(step, [f](In q) { return static_cast<int32_t>(f(q)); });
  return nullptr;
}

// The kernel of a function of 8-bit values, given what it makes of every stored byte.
std::unique_ptr<Kernel> of_bytes(const Step& step, const CoreSet& cores, const std::array<int64_t, 256>& values);

}  // namespace map_detail

// The kernel of int64_t f(int64_t) on the plan's own values; the result wraps to the output's width.
template <class Function>
std::unique_ptr<Kernel> make_integer_map(const Step& step, const CoreSet& cores, const Function& f) {
  const Type from = step.input(0).type;
  if (is_byte(from)) {
    std::array<int64_t, 256> values;
    for (int byte = 0; byte < 256; ++byte) values[byte] = f(value_of_byte(from, byte));
    return map_detail::of_bytes(step, cores, values);
  }
  if (from == Type::s16) return map_detail::from_wide<int16_t>(step, f);
  if (from == Type::s32) return map_detail::from_wide<int32_t>(step, f);
  return nullptr;
}

}  // namespace bittrue
