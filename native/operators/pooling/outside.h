// What lies outside of a tensor that is resized: one value at some places of the result's axes.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {

class Outside {
 public:
  // A step without such places has no array `outside`.
  explicit Outside(const Step& step) {
    if (!step.has_array("outside")) return;
    const Operand& out = step.output();
    require(out.dense(), "what is filled must be dense");
    const Array& value = step.array("outside");
    require(value.count == 1, "one value lies outside");
    if (out.type == Type::f32) {
      item_ = put(static_cast<float>(value.real(0)));
    } else if (out.type == Type::s32) {
      item_ = put(static_cast<int32_t>(value.integer(0)));
    } else {
      require(is_8bit(out.type), "no native kernel for these types");
      item_ = put(static_cast<uint8_t>(value.integer(0) ^ flip_of(out.type)));
    }
    int64_t inner = 1;
    for (size_t a = out.shape.size(); a-- > 0;) {
      const auto found = step.arrays.find("outside_" + std::to_string(a));
      if (found != step.arrays.end()) {
        Axis axis{out.shape[a], inner, {}};
        for (int64_t i = 0; i < found->second.count; ++i) {
          axis.places.push_back(found->second.integer(i));
          require(axis.places.back() >= 0 && axis.places.back() < out.shape[a], "a place is out of range");
        }
        axes_.push_back(std::move(axis));
      }
      inner *= out.shape[a];
    }
    elements_ = out.elements;
  }

  void fill(uint8_t* out) const {
    const auto bytes = static_cast<int64_t>(item_.size());
    for (const Axis& axis : axes_) {
      const int64_t outer = elements_ == 0 ? 0 : elements_ / (axis.size * axis.inner);
      for (int64_t o = 0; o < outer; ++o) {
        for (const int64_t place : axis.places) {
          uint8_t* run = out + (o * axis.size + place) * axis.inner * bytes;
          for (int64_t i = 0; i < axis.inner; ++i) std::memcpy(run + i * bytes, item_.data(), item_.size());
        }
      }
    }
  }

 private:
  struct Axis {
    int64_t size, inner;
    std::vector<int64_t> places;
  };
  template <class T>
  static std::vector<uint8_t> put(T value) {
    std::vector<uint8_t> item(sizeof(T));
    std::memcpy(item.data(), &value, sizeof(T));
    return item;
  }

  std::vector<uint8_t> item_;
  std::vector<Axis> axes_;
  int64_t elements_ = 0;
};

}  // namespace bittrue
