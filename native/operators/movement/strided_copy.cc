#include "operators/movement/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "operators/core/interleave.h"

namespace bittrue {
namespace {

template <int Bytes>
void copy_fixed(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride, int64_t count,
                int64_t) {
  int64_t i = 0;
  if constexpr (Bytes == sizeof(uint32_t)) {
    // Every second number; what lies behind the last one is not read.
    for (; source_stride == 8 && target_stride == 4 && i + 4 < count; i += 4, source += 32, target += 16) {
      Vector32 numbers[2];
      std::memcpy(numbers, source, sizeof numbers);
      numbers[0] = even_lanes(numbers[0], numbers[1]);
      std::memcpy(target, numbers, 16);
    }
  }
  for (; i < count; ++i, source += source_stride, target += target_stride) {
    std::memcpy(target, source, Bytes);
  }
}

// Between Bytes and 2 * Bytes: two pieces that overlap.
template <int Bytes>
void copy_twice(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride, int64_t count,
                int64_t chunk) {
  for (int64_t i = 0; i < count; ++i, source += source_stride, target += target_stride) {
    uint8_t first[Bytes], second[Bytes];
    std::memcpy(first, source, Bytes);
    std::memcpy(second, source + chunk - Bytes, Bytes);
    std::memcpy(target, first, Bytes);
    std::memcpy(target + chunk - Bytes, second, Bytes);
  }
}

void copy_any(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride, int64_t count,
              int64_t chunk) {
  for (int64_t i = 0; i < count; ++i, source += source_stride, target += target_stride) {
    std::memcpy(target, source, static_cast<size_t>(chunk));
  }
}

// The source does not move and the target is contiguous.
template <class T>
void fill(const uint8_t* source, int64_t, uint8_t* target, int64_t, int64_t count, int64_t) {
  T value;
  std::memcpy(&value, source, sizeof(T));
  if (sizeof(T) == 1) {
    std::memset(target, *source, static_cast<size_t>(count));
  } else {
    for (int64_t i = 0; i < count; ++i) std::memcpy(target + i * sizeof(T), &value, sizeof(T));
  }
}

// Exchanges the bits of `mask` shifted up in `a` with those of `mask` in `b`.
inline void exchange(uint64_t& a, uint64_t& b, int bits, uint64_t mask) {
  const uint64_t different = ((a >> bits) ^ b) & mask;
  b ^= different;
  a ^= different << bits;
}

// Transposes 8 x 8 bytes: target[i * target_stride + j] = source[j * source_stride + i].
void transpose_bytes(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride) {
  uint64_t x[8];
  for (int j = 0; j < 8; ++j) std::memcpy(&x[j], source + j * source_stride, 8);
  for (int j = 0; j < 4; ++j) exchange(x[j], x[j + 4], 32, 0x00000000ffffffff);
  for (int j = 0; j < 8; j += 4) {
    exchange(x[j], x[j + 2], 16, 0x0000ffff0000ffff);
    exchange(x[j + 1], x[j + 3], 16, 0x0000ffff0000ffff);
  }
  for (int j = 0; j < 8; j += 2) exchange(x[j], x[j + 1], 8, 0x00ff00ff00ff00ff);
  for (int i = 0; i < 8; ++i) std::memcpy(target + i * target_stride, &x[i], 8);
}

// The same of as many rows as a vector has numbers.
template <class Vector>
void transpose_vectors(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride) {
  constexpr int kSide = sizeof(Vector) / sizeof(Vector{}[0]);
  Vector x[kSide], y[kSide];
  for (int j = 0; j < kSide; ++j) std::memcpy(&x[j], source + j * source_stride, sizeof(Vector));
#pragma GCC unroll 4
  for (int side = kSide; side > 1; side /= 2) {
#pragma GCC unroll 8
    for (int j = 0; j < kSide / 2; ++j) {
      y[2 * j] = interleave_low(x[j], x[j + kSide / 2]);
      y[2 * j + 1] = interleave_high(x[j], x[j + kSide / 2]);
    }
#pragma GCC unroll 16
    for (int j = 0; j < kSide; ++j) x[j] = y[j];
  }
  for (int i = 0; i < kSide; ++i) std::memcpy(target + i * target_stride, &x[i], sizeof(Vector));
}

template <int Bytes>
void transpose_plain(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride,
                     int64_t across, int64_t along) {
  for (int64_t i = 0; i < across; ++i) {
    for (int64_t j = 0; j < along; ++j) {
      std::memcpy(target + i * target_stride + j * Bytes, source + j * source_stride + i * Bytes, Bytes);
    }
  }
}

// Squares of kSide; the last ones reach back over others.
template <int Bytes, int64_t kSide, class Square>
void transpose_squares(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride,
                       int64_t across, int64_t along, const Square& square) {
  constexpr int64_t kLine = 64 / Bytes;  // of the source, all of which is read while it is near
  for (int64_t line = 0; line < across; line += kLine) {
    for (int64_t begin = 0; begin < along; begin += kSide) {
      const int64_t j = std::min(begin, along - kSide);
      for (int64_t place = line; place < std::min(line + kLine, across); place += kSide) {
        const int64_t i = std::min(place, across - kSide);
        square(source + j * source_stride + i * Bytes, source_stride, target + i * target_stride + j * Bytes,
               target_stride);
      }
    }
  }
}

template <class Vector>
void transpose_block(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride,
                     int64_t across, int64_t along) {
  constexpr int kBytes = sizeof(Vector{}[0]);
  constexpr int64_t kSide = sizeof(Vector) / kBytes;
  const int64_t least = std::min(across, along);
  if (least >= kSide) {
    transpose_squares<kBytes, kSide>(source, source_stride, target, target_stride, across, along,
                                     transpose_vectors<Vector>);
  } else if (kBytes == 1 && least >= 8) {
    transpose_squares<kBytes, 8>(source, source_stride, target, target_stride, across, along, transpose_bytes);
  } else {
    transpose_plain<kBytes>(source, source_stride, target, target_stride, across, along);
  }
}

constexpr int64_t kCopyBlock = 64;  // elements per side of a transposed block: 64 cache lines at most

}  // namespace

void transpose_numbers(const float* source, int64_t source_step, float* target, int64_t target_step, int64_t across,
                       int64_t along) {
  transpose_block<Vector32>(reinterpret_cast<const uint8_t*>(source), source_step * 4,
                            reinterpret_cast<uint8_t*>(target), target_step * 4, across, along);
}

std::vector<int64_t> byte_strides(const Operand& operand) {
  std::vector<int64_t> strides(operand.shape.size());
  int64_t stride = type_bytes(operand.type);
  for (int a = operand.rank() - 1; a >= 0; --a) {
    strides[a] = stride;
    stride = a == operand.rank() - 1 ? operand.row_stride : stride * operand.shape[a];
  }
  return strides;
}

void require_same_type(const Operand& first, const Operand& second) {
  require(first.type == second.type && type_bytes(first.type) > 0, "both sides must have one type");
}

StridedCopy::StridedCopy(const std::vector<CopyAxis>& axes, int64_t element, int64_t source_offset,
                         int64_t target_offset)
    : chunk_(element), source_offset_(source_offset), target_offset_(target_offset), bytes_(element) {
  for (const CopyAxis& axis : axes) {
    bytes_ *= axis.dimension;
    if (axis.dimension == 1) continue;
    aligned_ = aligned_ && axis.source == axis.target;
    if (!axes_.empty() && axes_.back().source == axis.source * axis.dimension &&
        axes_.back().target == axis.target * axis.dimension) {
      axes_.back() = {axes_.back().dimension * axis.dimension, axis.source, axis.target};
    } else {
      axes_.push_back(axis);
    }
  }
  if (bytes_ == 0) {
    axes_.clear();
    return;
  }
  if (!axes_.empty() && axes_.back().source == chunk_ && axes_.back().target == chunk_) {
    chunk_ *= axes_.back().dimension;
    axes_.pop_back();
  }
  // One long piece is cut so that threads can share it.
  constexpr int64_t kPiece = 16 << 10;
  if (axes_.empty() && chunk_ % kPiece == 0 && chunk_ > kPiece) {
    axes_.push_back({chunk_ / kPiece, kPiece, kPiece});
    chunk_ = kPiece;
  }
  if (axes_.empty()) axes_.push_back({1, 0, 0});
  require(axes_.size() <= kMostAxes, "too many axes");
  choose();
}

void StridedCopy::choose() {
  const CopyAxis last = axes_.back();
  const bool power = chunk_ == 1 || chunk_ == 2 || chunk_ == 4 || chunk_ == 8;
  if (power && last.source == 0 && last.target == chunk_) {
    rows_ = chunk_ == 1 ? fill<uint8_t> : chunk_ == 2 ? fill<uint16_t> : chunk_ == 4 ? fill<uint32_t> : fill<uint64_t>;
    return;
  }
  if (power && last.target == chunk_ && last.dimension >= 8) {
    for (size_t a = 0; a + 1 < axes_.size(); ++a) {
      if (axes_[a].source != chunk_ || axes_[a].dimension < 8) continue;
      blocks_ = true;
      across_ = axes_[a];
      along_ = last;
      // The last axis now counts blocks of `across`; the others stay around it.
      axes_.pop_back();
      axes_.erase(axes_.begin() + static_cast<std::ptrdiff_t>(a));
      axes_.push_back({(across_.dimension + kCopyBlock - 1) / kCopyBlock, kCopyBlock * across_.source,
                       kCopyBlock * across_.target});
      return;
    }
  }
  // Long loops inside, short ones outside.
  if (axes_.size() > 1 && last.dimension < 8 && axes_[axes_.size() - 2].dimension > last.dimension) {
    std::swap(axes_[axes_.size() - 2], axes_.back());
  }
  switch (chunk_) {
    case 1: rows_ = copy_fixed<1>; break;
    case 2: rows_ = copy_fixed<2>; break;
    case 3: rows_ = copy_fixed<3>; break;
    case 4: rows_ = copy_fixed<4>; break;
    case 8: rows_ = copy_fixed<8>; break;
    case 16: rows_ = copy_fixed<16>; break;
    case 32: rows_ = copy_fixed<32>; break;
    default: rows_ = chunk_ < 8 ? copy_twice<4> : chunk_ < 16 ? copy_twice<8> : chunk_ < 32 ? copy_twice<16> : copy_any;
  }
}

int64_t StridedCopy::units() const {
  int64_t count = axes_.empty() ? 0 : 1;
  for (const CopyAxis& axis : axes_) count *= axis.dimension;
  return count;
}

bool StridedCopy::in_place(const uint8_t* source, const uint8_t* target) const {
  return aligned_ && source + source_offset_ == target + target_offset_;
}

void StridedCopy::run(const uint8_t* source, uint8_t* target, ThreadPool& pool) const {
  if (in_place(source, target)) return;
  source += source_offset_;
  target += target_offset_;
  share(pool, units(), [&](int64_t begin, int64_t end) {
    if (blocks_) return run_blocks(source, target, begin, end);
    visit(begin, end, [&](int64_t from, int64_t to, int64_t, int64_t count) {
      rows_(source + from, axes_.back().source, target + to, axes_.back().target, count, chunk_);
    });
  });
}

void StridedCopy::run_blocks(const uint8_t* source, uint8_t* target, int64_t begin, int64_t end) const {
  const auto block = chunk_ == 1   ? transpose_block<Vector8>
                     : chunk_ == 2 ? transpose_block<Vector16>
                     : chunk_ == 4 ? transpose_block<Vector32>
                                   : transpose_block<Vector64>;
  const CopyAxis& step = axes_.back();
  visit(begin, end, [&](int64_t from, int64_t to, int64_t first, int64_t count) {
    for (int64_t at = first; at < first + count; ++at, from += step.source, to += step.target) {
      const int64_t across = std::min(kCopyBlock, across_.dimension - at * kCopyBlock);
      for (int64_t along = 0; along < along_.dimension; along += kCopyBlock) {
        block(source + from + along * along_.source, along_.source, target + to + along * along_.target, across_.target,
              across, std::min(kCopyBlock, along_.dimension - along));
      }
    }
  });
}

PaddedCopy::PaddedCopy(const std::vector<PaddedAxis>& axes, int64_t element, int64_t source_offset,
                       int64_t target_offset) {
  std::vector<CopyAxis> inside;
  int64_t begin = target_offset;
  for (const PaddedAxis& axis : axes) {
    require(axis.before >= 0 && axis.dimension >= 0 && axis.before <= axis.padded - axis.dimension,
            "the border does not fit");
    inside.push_back({axis.dimension, axis.source, axis.target});
    begin += axis.before * axis.target;
  }
  box_.emplace_back(inside, element, source_offset, begin);
  // What lies before and after the box along axis a: axes ahead of a are inside the box, axes behind it are whole.
  int64_t offset = target_offset;
  for (size_t a = 0; a < axes.size(); ++a) {
    const int64_t sides[2][2] = {{0, axes[a].before}, {axes[a].before + axes[a].dimension, axes[a].padded}};
    for (const auto& side : sides) {
      if (side[0] == side[1]) continue;
      std::vector<CopyAxis> part;
      for (size_t b = 0; b < axes.size(); ++b) {
        const int64_t dimension = b < a ? axes[b].dimension : b == a ? side[1] - side[0] : axes[b].padded;
        part.push_back({dimension, 0, axes[b].target});
      }
      border_.emplace_back(part, element, 0, offset + side[0] * axes[a].target);
    }
    offset += axes[a].before * axes[a].target;
  }
}

void PaddedCopy::run(const uint8_t* source, const uint8_t* value, uint8_t* target, ThreadPool& pool) const {
  for (const StridedCopy& part : border_) part.run(value, target, pool);
  for (const StridedCopy& part : box_) part.run(source, target, pool);
}

void store_element(Type type, int64_t value, uint8_t* element) {
  require(value >= -(int64_t{1} << 32) && value <= int64_t{1} << 32, "the value is out of range");
  std::memset(element, 0, kLargestElement);
  const auto store = [&](auto typed) {
    require(static_cast<int64_t>(typed) == value, "the value does not fit its type");
    std::memcpy(element, &typed, sizeof(typed));
  };
  switch (type) {
    case Type::s2:
    case Type::s4: return store(static_cast<int8_t>(value));
    case Type::s8:
      store(static_cast<int8_t>(value));
      *element = static_cast<uint8_t>(*element + flip_of(type));
      return;
    case Type::u8: return store(static_cast<uint8_t>(value));
    case Type::s16: return store(static_cast<int16_t>(value));
    case Type::u16: return store(static_cast<uint16_t>(value));
    case Type::s32: return store(static_cast<int32_t>(value));
    case Type::u32: return store(static_cast<uint32_t>(value));
    case Type::s64: return store(value);
    case Type::f32: return store(static_cast<float>(value));
    case Type::f64: return store(static_cast<double>(value));
    default: require(value == 0, "a value of a type that is only moved");
  }
}

}  // namespace bittrue
