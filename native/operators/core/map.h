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
class WideTable final : public Kernel {
 public:
  WideTable(const Step& step, const std::array<Out, 256>& table)
      : blocks_({&step.input(0)}, step.output()), table_(table) {}

  void run(const Run& run) const override {
    blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
      auto* target = reinterpret_cast<Out*>(out);
      for (int64_t i = 0; i < count; ++i) target[i] = table_[in[0][i]];
    });
  }
  int64_t scratch_bytes(int threads) const override { return blocks_.scratch_bytes(threads); }
  std::string note() const override { return "lookup table"; }

 private:
  Blocks blocks_;
  std::array<Out, 256> table_;
};

// Function: Out operator()(In) const. `Flip` is added to what is stored.
template <class In, class Out, class Function>
class Map final : public Kernel {
 public:
  Map(const Step& step, Function function) : blocks_({&step.input(0)}, step.output()), function_(std::move(function)) {
    require(type_bytes(step.input(0).type) == sizeof(In) && type_bytes(step.output().type) == sizeof(Out),
            "no native kernel for these types");
  }

  void run(const Run& run) const override {
    blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
      const auto* source = reinterpret_cast<const In*>(in[0]);
      auto* target = reinterpret_cast<Out*>(out);
      for (int64_t i = 0; i < count; ++i) target[i] = function_(source[i]);
    });
  }
  int64_t scratch_bytes(int threads) const override { return blocks_.scratch_bytes(threads); }

 private:
  Blocks blocks_;
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

template <class Out, class Function>
std::unique_ptr<Kernel> wide_table(const Step& step, const Function& f) {
  std::array<Out, 256> table;
  for (int byte = 0; byte < 256; ++byte) table[byte] = static_cast<Out>(f(value_of_byte(step.input(0).type, byte)));
  return std::make_unique<WideTable<Out>>(step, table);
}

}  // namespace map_detail

// The kernel of int64_t f(int64_t) on the plan's own values; the result wraps to the output's width.
template <class Function>
std::unique_ptr<Kernel> make_integer_map(const Step& step, const CoreSet& cores, const Function& f) {
  const Type from = step.input(0).type, to = step.output().type;
  if (is_byte(from)) {
    if (to == Type::s16) return map_detail::wide_table<int16_t>(step, f);
    if (to == Type::s32) return map_detail::wide_table<int32_t>(step, f);
    if (!is_byte(to)) return nullptr;
    std::array<uint8_t, 256> table;
    for (int byte = 0; byte < 256; ++byte) {
      table[byte] = static_cast<uint8_t>(f(value_of_byte(from, byte)) + flip_of(to));
    }
    return make_lookup(step, cores, table);
  }
  if (from == Type::s16) return map_detail::from_wide<int16_t>(step, f);
  if (from == Type::s32) return map_detail::from_wide<int32_t>(step, f);
  return nullptr;
}

}  // namespace bittrue
