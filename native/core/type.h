// Element types of plan tensors and prepared arrays, named as plans name them.
#pragma once

#include <cstdint>

namespace bittrue {

enum class Type : uint8_t {
  s2,
  s4,
  s8,
  u8,
  s16,
  u16,
  s32,
  u32,
  s64,
  u64,
  f32,
  f64,
  boolean,
  u2,
  u4,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  f6e2m3,
  f6e3m2,
  f4e2m1,
  f16,
  bf16,
  c64,
  c128,
  other
};

// `other` where no type has this name.
Type find_type(const char* name);

// Per element at run time: sub-byte integers take one byte. 0 for `other`.
int type_bytes(Type type);

// Native memory holds every 8-bit integer unsigned: s8 values are moved up by this much.
inline int flip_of(Type type) { return type == Type::s8 ? 128 : 0; }

inline bool is_8bit(Type type) { return type == Type::s8 || type == Type::u8; }

// Real numbers of 16 bits.
inline bool is_half(Type type) { return type == Type::f16 || type == Type::bf16; }

}  // namespace bittrue
