#include "operators/core/map.h"

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

}  // namespace

std::unique_ptr<Kernel> make_lookup(const Step& step, const CoreSet& cores, const std::array<uint8_t, 256>& table) {
  require(is_byte(step.input(0).type) && is_byte(step.output().type), "bytes are needed on both sides");
  return std::make_unique<LookupTable>(step, cores, table);
}

std::unique_ptr<Kernel> map_detail::of_bytes(const Step& step, const CoreSet& cores,
                                             const std::array<int64_t, 256>& values) {
  const Type to = step.output().type;
  if (to == Type::s16) return wide_table<int16_t>(step, values);
  if (to == Type::s32) return wide_table<int32_t>(step, values);
  if (!is_byte(to)) return nullptr;
  std::array<uint8_t, 256> table;
  for (int byte = 0; byte < 256; ++byte) table[byte] = static_cast<uint8_t>(values[byte] + flip_of(to));
  return make_lookup(step, cores, table);
}

}  // namespace bittrue
