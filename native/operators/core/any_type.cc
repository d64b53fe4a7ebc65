#include "operators/core/any_type.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "core/step.h"
#include "operators/core/map.h"

namespace bittrue {
namespace {

template <class T>
void read_as(const uint8_t* in, double* out, int64_t count) {
  const auto* source = reinterpret_cast<const T*>(in);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(source[i]);
}
template <class T>
void read_by_single(const uint8_t* in, double* out, int64_t count) {
  const auto* source = reinterpret_cast<const T*>(in);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(source[i]);
}

double number_of_byte(Type type, int byte) {
  if (const arithmetic::Format* form = format_of(type)) return arithmetic::decoded(byte, *form);
  if (type == Type::f8e8m0) return byte == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, byte - 127);
  return type == Type::boolean ? byte != 0 : static_cast<double>(value_of_byte(type, byte));
}

}  // namespace

const arithmetic::Format* format_of(Type type) {
  switch (type) {
    case Type::f16: return &arithmetic::kF16;
    case Type::bf16: return &arithmetic::kBf16;
    case Type::f8e4m3fn: return &arithmetic::kF8e4m3fn;
    case Type::f8e4m3fnuz: return &arithmetic::kF8e4m3fnuz;
    case Type::f8e5m2: return &arithmetic::kF8e5m2;
    case Type::f8e5m2fnuz: return &arithmetic::kF8e5m2fnuz;
    case Type::f6e2m3: return &arithmetic::kF6e2m3;
    case Type::f6e3m2: return &arithmetic::kF6e3m2;
    case Type::f4e2m1: return &arithmetic::kF4e2m1;
    default: return nullptr;
  }
}

bool ends_of(Type type, rules::Ends& ends) {
  switch (type) {
    case Type::s2: return ends = {-2, 1}, true;
    case Type::s4: return ends = {-8, 7}, true;
    case Type::s8: return ends = {INT8_MIN, INT8_MAX}, true;
    case Type::s16: return ends = {INT16_MIN, INT16_MAX}, true;
    case Type::s32: return ends = {INT32_MIN, INT32_MAX}, true;
    case Type::s64: return ends = {INT64_MIN, INT64_MAX}, true;
    case Type::u2: return ends = {0, 3}, true;
    case Type::u4: return ends = {0, 15}, true;
    case Type::u8: return ends = {0, UINT8_MAX}, true;
    case Type::u16: return ends = {0, UINT16_MAX}, true;
    case Type::u32: return ends = {0, UINT32_MAX}, true;
    case Type::u64: return ends = {0, UINT64_MAX}, true;
    default: return false;
  }
}

AnyReader::AnyReader(Type type) : type_(type), whole_(is_integer(type) || type == Type::boolean) {
  require(type != Type::c64 && type != Type::c128 && type != Type::other, "no native kernel for these types");
  for (int byte = 0; byte < 256 && bytes() == 1; ++byte) table_[byte] = number_of_byte(type, byte);
}

void AnyReader::reals(const uint8_t* in, double* out, int64_t count, bool single) const {
  switch (type_) {
    case Type::s16: return read_as<int16_t>(in, out, count);
    case Type::u16: return read_as<uint16_t>(in, out, count);
    case Type::f32: return read_as<float>(in, out, count);
    case Type::s32: return (single ? read_by_single<int32_t> : read_as<int32_t>)(in, out, count);
    case Type::u32: return (single ? read_by_single<uint32_t> : read_as<uint32_t>)(in, out, count);
    case Type::s64: return (single ? read_by_single<int64_t> : read_as<int64_t>)(in, out, count);
    case Type::u64: return (single ? read_by_single<uint64_t> : read_as<uint64_t>)(in, out, count);
    case Type::f64: return (single ? read_by_single<double> : read_as<double>)(in, out, count);
    case Type::f16:
      for (int64_t i = 0; i < count; ++i) out[i] = arithmetic::half_to_float(reinterpret_cast<const uint16_t*>(in)[i]);
      return;
    case Type::bf16:
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t bits = reinterpret_cast<const uint16_t*>(in)[i];
        out[i] = arithmetic::float_of_bits(bits << 16);
      }
      return;
    default:
      for (int64_t i = 0; i < count; ++i) out[i] = table_[in[i]];
  }
}

void AnyReader::integers(const uint8_t* in, int64_t* out, int64_t count) const {
  if (bytes() == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(table_[in[i]]);
    return;
  }
  // Low bits alone are wanted, but of types that are widened.
  load_integers(in, bytes(), out, count);
  const uint64_t mask = type_ == Type::u16 ? UINT16_MAX : type_ == Type::u32 ? UINT32_MAX : UINT64_MAX;
  for (int64_t i = 0; i < count && mask != UINT64_MAX; ++i) out[i] &= static_cast<int64_t>(mask);
}

IntegerWriter::IntegerWriter(Type type) : bytes_(type_bytes(type)), flip_(flip_of(type)) {
  rules::Ends ends{};
  require(ends_of(type, ends), "no native kernel for these types");
  if (bytes_ == 1 && ends.maximum - static_cast<uint64_t>(ends.minimum) < 255) {
    low_ = ends.minimum, mask_ = static_cast<int64_t>(ends.maximum) - ends.minimum;
  }
}

void IntegerWriter::store(int64_t* values, uint8_t* out, int64_t count) const {
  if (bytes_ == 8) {
    std::memcpy(out, values, static_cast<size_t>(8 * count));
    return;
  }
  if (mask_ != -1) {
    for (int64_t i = 0; i < count; ++i) values[i] = ((values[i] - low_) & mask_) + low_;
  }
  for (int64_t i = 0; i < count && flip_ != 0; ++i) values[i] += flip_;
  store_low_bits(values, bytes_, out, count);
}

RealWriter::RealWriter(Type type, const std::string& narrow, bool one_nan) : type_(type), one_nan_(one_nan) {
  if (type == Type::f32 || type == Type::f64 || (is_half(type) && narrow.empty())) return;
  const arithmetic::Format* form = format_of(type);
  require(form != nullptr && rules::find_rule(narrow, rule_), "no native kernel for these types");
  form_ = *form, by_rule_ = true;
}

void RealWriter::store(const double* values, uint8_t* out, int64_t count) const {
  if (by_rule_) {
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t code = rules::narrow(rule_, values[i], form_);
      if (is_half(type_)) {
        reinterpret_cast<uint16_t*>(out)[i] = static_cast<uint16_t>(code);
      } else {
        out[i] = static_cast<uint8_t>(code);
      }
    }
    return;
  }
  if (type_ == Type::f64) {
    std::memcpy(out, values, static_cast<size_t>(8 * count));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<float>(values[i]);
    const uint32_t bits = arithmetic::bits_of(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    if (type_ == Type::f32) {
      reinterpret_cast<float*>(out)[i] = x;
    } else if (type_ == Type::f16) {
      reinterpret_cast<uint16_t*>(out)[i] = arithmetic::float_to_half(x);
    } else {
      const uint32_t missing = one_nan_ ? 0x7fc1u : ((bits >> 16) & 0x8000u) | 0x7fc0u;
      reinterpret_cast<uint16_t*>(out)[i] = static_cast<uint16_t>(x == x ? rounded : missing);
    }
  }
}

}  // namespace bittrue
