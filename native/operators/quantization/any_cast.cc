// cast and convert between types that have no loop of their own: by way of binary64, or of integers of 64 bits.
#include "operators/quantization/any_cast.h"

#include <cstring>
#include <optional>

#include "operators/core/any_type.h"
#include "operators/core/blocks.h"
#include "rules/power_code.h"

namespace bittrue {
namespace {

constexpr int64_t kPart = 512;

std::string rule_of(const Step& step, const char* slot) {
  const auto found = step.rules.find(slot);
  return found == step.rules.end() ? "" : found->second;
}

// What binary64 numbers become, or integers; `place` counts elements of a dense tensor.
class AnyTarget {
 public:
  AnyTarget(const Step& step, bool whole) : type_(step.output().type) {
    if (type_ == Type::boolean) return;
    if (ends_of(type_, ends_)) {
      integers_.emplace(type_);
      if (whole) return;
      cast_ = rules::find_cast(step.rule("cast"), ends_);
      require(cast_ != nullptr, "no native rule for this slot");
      if (step.rules.count("cast_tail") != 0) {
        tail_ = rules::find_cast(step.rule("cast_tail"), ends_);
        require(tail_ != nullptr, "no native rule for this slot");
        const int64_t lanes = step.integer("lanes", 1, 64);
        split_ = step.output().elements / lanes * lanes;
      }
      return;
    }
    if (type_ == Type::f8e8m0) {
      const std::string &rule = step.rule("power_code"), &rounding = step.text("round_mode");
      by_magnitude_ = rule == "by_magnitude";
      require(by_magnitude_ || rule == "of_binary32_between_ends", "no native rule for this slot");
      rounding_ = rounding == "up"     ? rules::PowerRounding::up
                  : rounding == "down" ? rules::PowerRounding::down
                                       : rules::PowerRounding::nearest;
      saturates_ = step.integer("saturate", 0, 1) != 0;
      return;
    }
    reals_.emplace(type_, rule_of(step, "narrow"), step.integers.count("one_nan") != 0);
  }

  // Whether integers are rounded to binary32 first.
  bool single() const { return type_ != Type::f64 && !by_magnitude_; }
  bool is_whole() const { return integers_.has_value(); }
  int64_t bytes() const { return type_bytes(type_); }

  // Of integers, where is_whole().
  void store(int64_t* values, uint8_t* out, int64_t count) const {
    if (integers_) integers_->store(values, out, count);
  }

  void store(const double* values, uint8_t* out, int64_t count, int64_t place) const {
    if (integers_) {
      int64_t whole[kPart];
      const int64_t first = tail_ == nullptr ? count : std::min(count, std::max<int64_t>(0, split_ - place));
      cast_(values, whole, first, ends_);
      if (first < count) tail_(values + first, whole + first, count - first, ends_);
      integers_->store(whole, out, count);
    } else if (reals_) {
      reals_->store(values, out, count);
    } else if (type_ == Type::boolean) {
      for (int64_t i = 0; i < count; ++i) out[i] = values[i] != 0;
    } else {
      const auto code = by_magnitude_ ? rules::by_magnitude : rules::of_binary32_between_ends;
      for (int64_t i = 0; i < count; ++i) out[i] = code(values[i], rounding_, saturates_);
    }
  }

 private:
  Type type_;
  std::optional<IntegerWriter> integers_;
  std::optional<RealWriter> reals_;
  rules::Ends ends_{};
  rules::CastRow cast_ = nullptr, tail_ = nullptr;
  int64_t split_ = 0;
  bool by_magnitude_ = false, saturates_ = false;
  rules::PowerRounding rounding_ = rules::PowerRounding::up;
};

// To integers cast takes the byte of a truth value as it is.
Type type_read(const Step& step) {
  const Type from = step.input(0).type;
  return from == Type::boolean && step.name == "cast" && is_integer(step.output().type) ? Type::u8 : from;
}

class AnyCast final : public Kernel {
 public:
  explicit AnyCast(const Step& step)
      : blocks_({&step.input(0)}, step.output()),
        from_(type_read(step)),
        to_(step, from_.whole()),
        in_bytes_(from_.bytes()),
        out_bytes_(to_.bytes()) {
    require(step.rules.count("cast_tail") == 0 || (step.input(0).dense() && step.output().dense()),
            "both sides must be dense");
    if (in_bytes_ != 1) return;
    // Few values: all of them once.
    std::array<uint8_t, 256> bytes;
    for (int byte = 0; byte < 256; ++byte) bytes[byte] = static_cast<uint8_t>(byte);
    convert(bytes.data(), table_.data(), 256, 0);
  }

  bool bears_changes() const override { return true; }
  int64_t scratch_bytes(int threads) const override { return blocks_.scratch_bytes(threads); }
  std::string note() const override { return in_bytes_ == 1 ? "lookup table" : ""; }

  void run(const Run& run) const override {
    blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
      if (in_bytes_ == 1) return look_up(in[0], out, count);
      const int64_t place = (out - run.outputs[0]) / out_bytes_;
      for (int64_t i = 0; i < count; i += kPart) {
        convert(in[0] + i * in_bytes_, out + i * out_bytes_, std::min(kPart, count - i), place + i);
      }
    });
  }

 private:
  void convert(const uint8_t* in, uint8_t* out, int64_t count, int64_t place) const {
    if (from_.whole() && to_.is_whole()) {
      int64_t values[kPart];
      from_.integers(in, values, count);
      return to_.store(values, out, count);
    }
    double values[kPart];
    from_.reals(in, values, count, from_.whole() && to_.single());
    to_.store(values, out, count, place);
  }

  template <class T>
  void look_up_as(const uint8_t* in, uint8_t* out, int64_t count) const {
    const auto* table = reinterpret_cast<const T*>(table_.data());
    for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(out)[i] = table[in[i]];
  }
  void look_up(const uint8_t* in, uint8_t* out, int64_t count) const {
    switch (out_bytes_) {
      case 1: return look_up_as<uint8_t>(in, out, count);
      case 2: return look_up_as<uint16_t>(in, out, count);
      case 4: return look_up_as<uint32_t>(in, out, count);
      default: return look_up_as<uint64_t>(in, out, count);
    }
  }

  Blocks blocks_;
  AnyReader from_;
  AnyTarget to_;
  int64_t in_bytes_, out_bytes_;
  alignas(64) std::array<uint8_t, 2048> table_{};
};

}  // namespace

std::unique_ptr<Kernel> make_any_cast(const Step& step) {
  const Type type = step.output().type;
  if (step.input(0).type == type) {
    const auto bytes = static_cast<size_t>(type_bytes(type));
    return make_blocks(step, {bytes}, bytes,
                       BlockFunction([bytes](const uint8_t* const* in, uint8_t* out, int64_t count) {
                         std::memcpy(out, in[0], static_cast<size_t>(count) * bytes);
                       }));
  }
  require(step.rules.count("widen") == 0 && step.rules.count("half_nan") == 0, "no native rule for this slot");
  return std::make_unique<AnyCast>(step);
}

}  // namespace bittrue
