#include "operators/core/map.h"

#include <cstring>

namespace bittrue {
namespace {

// Bytes per block: a table is cheap, so blocks are only there to share work out.
constexpr int64_t kLookupBlock = 16384;

class LookupTable final : public Kernel {
 public:
  LookupTable(const Step& step, const CoreSet& cores, const std::array<uint8_t, 256>& table)
      : blocks_({&step.input(0)}, step.output(), kLookupBlock), table_(table), lookup_(cores.lookup()) {
    for (int byte = 0; byte < 256; ++byte) identity_ = identity_ && table_[byte] == byte;
  }

  void run(const Run& run) const override {
    if (identity_ && run.inputs[0] == run.outputs[0]) return;
    blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
      if (identity_) {
        std::memcpy(out, in[0], static_cast<size_t>(count));
      } else {
        lookup_(table_.data(), in[0], out, count);
      }
    });
  }
  int64_t scratch_bytes(int threads) const override { return blocks_.scratch_bytes(threads); }
  std::string note() const override { return identity_ ? "copy" : "lookup table"; }

 private:
  Blocks blocks_;
  std::array<uint8_t, 256> table_;
  Lookup lookup_;
  bool identity_ = true;
};

}  // namespace

std::unique_ptr<Kernel> make_lookup(const Step& step, const CoreSet& cores, const std::array<uint8_t, 256>& table) {
  require(is_byte(step.input(0).type) && is_byte(step.output().type), "bytes are needed on both sides");
  return std::make_unique<LookupTable>(step, cores, table);
}

}  // namespace bittrue
