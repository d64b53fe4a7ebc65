#include "core/type.h"

#include <cstring>

namespace bittrue {
namespace {

struct TypeRow {
  const char* name;
  Type type;
  int bytes;  // per element at run time: sub-byte integers take one byte
};

constexpr TypeRow kTypes[] = {
    {"s2", Type::s2, 1},
    {"s4", Type::s4, 1},
    {"s8", Type::s8, 1},
    {"u8", Type::u8, 1},
    {"s16", Type::s16, 2},
    {"u16", Type::u16, 2},
    {"s32", Type::s32, 4},
    {"u32", Type::u32, 4},
    {"s64", Type::s64, 8},
    {"u64", Type::u64, 8},
    {"f32", Type::f32, 4},
    {"f64", Type::f64, 8},
    {"bool", Type::boolean, 1},
    {"u2", Type::u2, 1},
    {"u4", Type::u4, 1},
    {"f8e4m3fn", Type::f8e4m3fn, 1},
    {"f8e4m3fnuz", Type::f8e4m3fnuz, 1},
    {"f8e5m2", Type::f8e5m2, 1},
    {"f8e5m2fnuz", Type::f8e5m2fnuz, 1},
    {"f8e8m0", Type::f8e8m0, 1},
    {"f6e2m3", Type::f6e2m3, 1},
    {"f6e3m2", Type::f6e3m2, 1},
    {"f4e2m1", Type::f4e2m1, 1},
    {"f16", Type::f16, 2},
    {"bf16", Type::bf16, 2},
    {"c64", Type::c64, 8},
    {"c128", Type::c128, 16},
};

}  // namespace

Type find_type(const char* name) {
  for (const TypeRow& row : kTypes) {
    if (std::strcmp(row.name, name) == 0) return row.type;
  }
  return Type::other;
}

int type_bytes(Type type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.bytes;
  }
  return 0;
}

}  // namespace bittrue
