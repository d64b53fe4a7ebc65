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
  bytes1,
  bytes2,
  bytes8,
  bytes16,
  other
};

// `other` where no type has this name.
Type find_type(const char* name);

// Per element at run time: sub-byte integers take one byte. 0 for `other`.
int type_bytes(Type type);

// Native memory holds every 8-bit integer unsigned: s8 values are moved up by this much.
inline int flip_of(Type type) { return type == Type::s8 ? 128 : 0; }

inline bool is_8bit(Type type) { return type == Type::s8 || type == Type::u8; }

}  // namespace bittrue
