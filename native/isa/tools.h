// Aligned arrays and unrolling, for files of an instruction set. BITTRUE_ISA is their namespace: each set must have its
// own copy, as each is compiled with other flags.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/memory.h"

namespace bittrue::BITTRUE_ISA {

// `count` zeroed elements, 64-byte aligned. Elements are plain numbers.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(int64_t count) : AlignedArray(unset(count)) {
    std::memset(static_cast<void*>(data_), 0, static_cast<size_t>(count) * sizeof(T));
  }
  // The same without a value, for what is written as a whole.
  static AlignedArray unset(int64_t count) {
    AlignedArray result;
    result.data_ = static_cast<T*>(lasting_memory(static_cast<size_t>(count) * sizeof(T)));
    return result;
  }
  AlignedArray(AlignedArray&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  AlignedArray& operator=(AlignedArray&& other) noexcept {
    T* const kept = data_;
    data_ = other.data_;
    other.data_ = kept;
    return *this;
  }
  ~AlignedArray() { std::free(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

template <int... i, class Function>
__attribute__((always_inline)) inline void unroll(std::integer_sequence<int, i...>, Function&& function) {
  (function(std::integral_constant<int, i>{}), ...);
}

// function(0), ..., function(count - 1) with constant arguments, so that arrays of vectors stay in registers. A function of
// int is compiled once; it must always be inlined.
template <int count, class Function>
__attribute__((always_inline)) inline void unroll(Function&& function) {
  unroll(std::make_integer_sequence<int, count>{}, std::forward<Function>(function));
}

// function(std::integral_constant<Enum, value>{}) for a value, one of `all`, that is known at run time only.
template <class Enum, Enum... all, class Function>
static inline void with_constant(Enum value, Function&& function) {
  static_cast<void>(((value == all && (function(std::integral_constant<Enum, all>{}), true)) || ...));
}

}  // namespace bittrue::BITTRUE_ISA
