#include "operators/core/map.h"

#include <algorithm>
#include <cstring>

namespace bittrue {
namespace {

// Bytes per block: a table is cheap, so blocks are only there to share work out.
constexpr int64_t kLookupBlock = 16384;

class LookupTable final : public BlockKernel {
 public:
  LookupTable(const Step& step, const CoreSet& cores, const std::array<uint8_t, 256>& table)
      : BlockKernel(step, 1, kLookupBlock), table_(table), lookup_(cores.lookup()) {
    for (int byte = 0; byte < 256; ++byte) identity_ = identity_ && table_[byte] == byte;
  }

  void run(const Run& run) const override {
    if (!identity_ || run.inputs[0] != run.outputs[0]) BlockKernel::run(run);
  }
  std::string note() const override { return identity_ ? "copy" : "lookup table"; }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    if (identity_) {
      std::memcpy(out, in[0], static_cast<size_t>(count));
    } else {
      lookup_(table_.data(), in[0], out, count);
    }
  }

  std::array<uint8_t, 256> table_;
  Lookup lookup_;
  bool identity_ = true;
};

template <class Out>
std::unique_ptr<Kernel> wide_table(const Step& step, const std::array<int64_t, 256>& values) {
  std::array<Out, 256> table;
  for (int byte = 0; byte < 256; ++byte) table[byte] = static_cast<Out>(values[byte]);
  return std::make_unique<WideTable<Out>>(step, table);
}

// The kernel of a function of 8-bit values, given what it makes of every stored byte.
std::unique_ptr<Kernel> of_bytes(const Step& step, const CoreSet& cores, const std::array<int64_t, 256>& values) {
  const Type to = step.output().type;
  if (to == Type::s16) return wide_table<int16_t>(step, values);
  if (to == Type::s32) return wide_table<int32_t>(step, values);
  if (!is_byte(to)) return nullptr;
  std::array<uint8_t, 256> table;
  for (int byte = 0; byte < 256; ++byte) table[byte] = static_cast<uint8_t>(values[byte] + flip_of(to));
  return make_lookup(step, cores, table);
}

template <class T>
void load_as(const uint8_t* in, int64_t* values, int64_t count) {
  const auto* source = reinterpret_cast<const T*>(in);
  for (int64_t i = 0; i < count; ++i) values[i] = source[i];
}

template <class T>
void store_as(const int64_t* values, uint8_t* out, int64_t count) {
  auto* target = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) target[i] = static_cast<T>(values[i]);
}

class IntegersMap final : public BlockKernel {
 public:
  IntegersMap(const Step& step, IntegersFunction function)
      : BlockKernel(step, 1),
        function_(std::move(function)),
        in_bytes_(type_bytes(step.input(0).type)),
        out_bytes_(type_bytes(step.output().type)),
        flip_(flip_of(step.output().type)) {}

  bool bears_changes() const override { return true; }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    constexpr int64_t kPart = 512;
    int64_t values[kPart];
    for (int64_t first = 0; first < count; first += kPart) {
      const int64_t part = std::min(kPart, count - first);
      load_integers(in[0] + first * in_bytes_, in_bytes_, values, part);
      function_(values, part);
      for (int64_t i = 0; i < part && flip_ != 0; ++i) values[i] += flip_;
      store_low_bits(values, out_bytes_, out + first * out_bytes_, part);
    }
  }

  IntegersFunction function_;
  int64_t in_bytes_, out_bytes_, flip_;
};

}  // namespace

std::unique_ptr<Kernel> make_lookup(const Step& step, const CoreSet& cores, const std::array<uint8_t, 256>& table) {
  require(is_byte(step.input(0).type) && is_byte(step.output().type), "bytes are needed on both sides");
  return std::make_unique<LookupTable>(step, cores, table);
}

void load_integers(const uint8_t* in, int64_t bytes, int64_t* values, int64_t count) {
  (bytes == 1   ? load_as<uint8_t>
   : bytes == 2 ? load_as<int16_t>
   : bytes == 4 ? load_as<int32_t>
                : load_as<int64_t>)(in, values, count);
}

void store_low_bits(const int64_t* values, int64_t bytes, uint8_t* out, int64_t count) {
  (bytes == 1 ? store_as<uint8_t> : bytes == 2 ? store_as<uint16_t> : store_as<uint32_t>)(values, out, count);
}

std::unique_ptr<Kernel> make_integers_map(const Step& step, const CoreSet& cores, IntegersFunction function) {
  const Type from = step.input(0).type, to = step.output().type;
  if (is_byte(from)) {
    std::array<int64_t, 256> values;
    for (int byte = 0; byte < 256; ++byte) values[byte] = value_of_byte(from, byte);
    function(values.data(), 256);
    return of_bytes(step, cores, values);
  }
  if (from != Type::s16 && from != Type::s32) return nullptr;
  if (!is_byte(to) && to != Type::s16 && to != Type::s32) return nullptr;
  return std::make_unique<IntegersMap>(step, std::move(function));
}

}  // namespace bittrue
