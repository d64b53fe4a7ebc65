// hashed_groups: twin of src/bittrue/operators/movement/hashed_groups.py, sequence by sequence.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

enum GroupsInput : size_t {
  kTokens,
  kFactors,
  kTables,
  kBounds,
  kPast,
  kOffsets,
  kEnding,
  kParts,
  kPastParts,
  kWanted
};

template <class T>
class HashedGroups final : public Kernel {
 public:
  explicit HashedGroups(const Step& step)
      : kept_(step.integer("size", 2, 1 << 20) - 1),
        heads_(step.integer("heads", 1, 1 << 20)),
        states_(step.integer("states", 0, 8)),
        missing_(static_cast<T>(step.integer("missing"))),
        ends_(step.integer("ends", 0, 1) != 0) {
    const Operand& tokens = step.input(kTokens);
    count_ = tokens.elements;
    bounded_ = step.has_input(kBounds);
    require(bounded_ ? tokens.rank() == 1 : tokens.rank() == 2, "the shapes do not fit");
    batch_ = bounded_ ? step.input(kBounds).elements - 1 : tokens.shape[0];
    require(batch_ > 0 && count_ > 0, "there are no tokens");
    constexpr Type kInteger = sizeof(T) == 8 ? Type::s64 : Type::s32;
    expect(step, kTokens, kInteger, count_);
    expect(step, kFactors, kInteger, -1);
    expect(step, kTables, kInteger, width());
    expect(step, kBounds, Type::s32, batch_ + 1);
    expect(step, kPast, kInteger, batch_ * kept_);
    expect(step, kOffsets, kInteger, width());
    expect(step, kEnding, kInteger, 1);
    expect(step, kParts, Type::s32, count_);
    expect(step, kPastParts, Type::s32, batch_ * kept_);
    expect(step, kWanted, Type::s32, batch_);
    require(
        step.input(kFactors).elements > kept_ && (!has_[kPastParts] || has_[kParts]) && has_[kWanted] == (states_ > 0),
        "the shapes do not fit");
    outputs_ = step.outputs.size();
    const int64_t wanted[] = {count_ * width(), batch_ * kept_, batch_ * kept_, batch_ * states_ * kept_};
    require(outputs_ <= 4 && (outputs_ < 3 || has_[kParts]), "the shapes do not fit");
    for (size_t i = 0; i < outputs_; ++i) {
      const Operand& out = step.output(i);
      require(out.type == (i == 2 ? Type::s32 : kInteger) && out.dense() && out.elements == wanted[i],
              "the shapes do not fit");
    }
  }
  int64_t scratch_bytes(int) const override { return (count_ + kept_) * static_cast<int64_t>(sizeof(T) + 5) + 64; }
  std::string note() const override { return "sequence by sequence"; }

  void run(const Run& run) const override {
    const T *tables = of<T>(run, kTables), *offsets = has_[kOffsets] ? of<T>(run, kOffsets) : nullptr;
    const int32_t* bounds = bounded_ ? of<int32_t>(run, kBounds) : nullptr;
    const auto end_of = [&](int64_t b) { return bounded_ ? int64_t{bounds[b]} : b * (count_ / batch_); };
    // What does not fit is the reference's to tell.
    bool fits = end_of(0) == 0 && end_of(batch_) == count_;
    for (int64_t b = 0; bounded_ && b < batch_; ++b) fits = fits && end_of(b + 1) > end_of(b);
    for (int64_t i = 0; i < width(); ++i) {
      fits = fits && tables[i] >= 1 &&
             (bounded_ || offsets == nullptr || offsets[i] <= std::numeric_limits<T>::max() - tables[i]);
    }
    if (!fits) throw Undefined();
    for (int64_t b = 0; b < batch_; ++b) {
      run.check();
      sequence(run, b, end_of(b), end_of(b + 1) - end_of(b));
    }
  }

 private:
  using Bits = std::make_unsigned_t<T>;
  template <class U>
  static const U* of(const Run& run, size_t input) {
    return reinterpret_cast<const U*>(run.inputs[input]);
  }
  int64_t width() const { return kept_ * heads_; }

  void expect(const Step& step, size_t input, Type type, int64_t elements) {
    has_[input] = step.has_input(input);
    if (!has_[input]) return;
    const Operand& operand = step.input(input);
    require(operand.type == type && operand.dense() && (elements < 0 || operand.elements == elements),
            "an operand has another form");
  }

  void sequence(const Run& run, int64_t b, int64_t first, int64_t count) const {
    const T missing = has_[kEnding] ? *of<T>(run, kEnding) : missing_, *tokens = of<T>(run, kTokens) + first;
    auto* row = reinterpret_cast<T*>(run.scratch);
    auto* part = reinterpret_cast<int32_t*>(row + kept_ + count);
    auto* breaks = reinterpret_cast<uint8_t*>(part + kept_ + count);
    has_[kPast] ? std::copy_n(of<T>(run, kPast) + b * kept_, kept_, row) : std::fill_n(row, kept_, missing);
    std::copy_n(tokens, count, row + kept_);
    breaks[0] = 0;
    for (int64_t i = 1; i < kept_ + count; ++i) breaks[i] = ends_ && has_[kEnding] && row[i - 1] == missing;
    if (has_[kParts]) {
      const int32_t* parts = of<int32_t>(run, kParts) + first;
      has_[kPastParts] ? std::copy_n(of<int32_t>(run, kPastParts) + b * kept_, kept_, part)
                       : std::fill_n(part, kept_, count > 0 ? parts[0] : 0);
      std::copy_n(parts, count, part + kept_);
      for (int64_t i = 1; i < kept_ + count; ++i) breaks[i] = breaks[i] || part[i] != part[i - 1];
    }
    places(run, row, breaks, count, missing, reinterpret_cast<T*>(run.outputs[0]) + first * width());
    if (outputs_ > 1) std::copy_n(row + count, kept_, reinterpret_cast<T*>(run.outputs[1]) + b * kept_);
    if (outputs_ > 2) std::copy_n(part + count, kept_, reinterpret_cast<int32_t*>(run.outputs[2]) + b * kept_);
    if (outputs_ <= 3) return;
    T* states = reinterpret_cast<T*>(run.outputs[3]) + b * states_ * kept_;
    std::fill_n(states, states_ * kept_, missing_);
    const int64_t wanted = has_[kWanted] ? of<int32_t>(run, kWanted)[b] : 0;
    for (int64_t i = 0; i < std::min({std::max<int64_t>(wanted, 0), states_, count}); ++i) {
      std::copy_n(row + i + 1, kept_, states + i * kept_);
    }
  }

  void places(const Run& run, const T* row, const uint8_t* breaks, int64_t count, T missing, T* out) const {
    const T *factors = of<T>(run, kFactors), *tables = of<T>(run, kTables);
    const T* offsets = has_[kOffsets] ? of<T>(run, kOffsets) : nullptr;
    int64_t last = 0;
    for (int64_t i = 0; i < kept_; ++i) last = breaks[i] ? i : last;
    for (int64_t place = kept_; place < kept_ + count; ++place) {
      last = breaks[place] ? place : last;
      Bits mixed = static_cast<Bits>(row[place]) * static_cast<Bits>(factors[0]);
      for (int64_t n = 1; n <= kept_; ++n) {
        const T seen = place - n >= last ? row[place - n] : missing;
        mixed ^= static_cast<Bits>(seen) * static_cast<Bits>(factors[n]);
        for (int64_t h = 0; h < heads_; ++h, ++out) {
          const int64_t at = (n - 1) * heads_ + h;
          const T rest = static_cast<T>(static_cast<T>(mixed) % tables[at]);
          const T found = rest < 0 ? static_cast<T>(rest + tables[at]) : rest;
          *out = offsets == nullptr ? found : static_cast<T>(static_cast<Bits>(found) + static_cast<Bits>(offsets[at]));
        }
      }
    }
  }

  int64_t kept_, heads_, states_;
  T missing_;
  bool ends_, bounded_ = false, has_[10] = {};
  int64_t count_ = 0, batch_ = 0;
  size_t outputs_ = 1;
};

std::unique_ptr<Kernel> make_hashed_groups(const Step& step, const CoreSet&) {
  if (step.input(0).type == Type::s64) return std::make_unique<HashedGroups<int64_t>>(step);
  return std::make_unique<HashedGroups<int32_t>>(step);
}

BITTRUE_OPERATOR(hashed_groups, make_hashed_groups)

}  // namespace
}  // namespace bittrue
