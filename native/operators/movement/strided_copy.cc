#include "operators/movement/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "operators/core/interleave.h"

namespace bittrue {
namespace {

template <int Bytes>
void copy_fixed(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride, int64_t count,
                int64_t) {
  for (int64_t i = 0; i < count; ++i, source += source_stride, target += target_stride) {
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

// Transposes 4 x 4 elements of 4 bytes.
void transpose_words(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride) {
  Vector32 x[4];
  for (int j = 0; j < 4; ++j) std::memcpy(&x[j], source + j * source_stride, 16);
  const Vector32 even_low = interleave_low(x[0], x[2]), even_high = interleave_high(x[0], x[2]),
                 odd_low = interleave_low(x[1], x[3]), odd_high = interleave_high(x[1], x[3]);
  x[0] = interleave_low(even_low, odd_low), x[1] = interleave_high(even_low, odd_low);
  x[2] = interleave_low(even_high, odd_high), x[3] = interleave_high(even_high, odd_high);
  for (int i = 0; i < 4; ++i) std::memcpy(target + i * target_stride, &x[i], 16);
}

// Transposes 8 x 8 bytes or 4 x 4 elements of 2 bytes: target[i * target_stride + j] = source[j * source_stride + i].
void transpose_square(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride, int size) {
  uint64_t x[8];
  const int rows = 8 / size;
  for (int j = 0; j < rows; ++j) std::memcpy(&x[j], source + j * source_stride, 8);
  if (size == 1) {
    for (int j = 0; j < 4; ++j) exchange(x[j], x[j + 4], 32, 0x00000000ffffffff);
    for (int j = 0; j < 8; j += 4) {
      exchange(x[j], x[j + 2], 16, 0x0000ffff0000ffff);
      exchange(x[j + 1], x[j + 3], 16, 0x0000ffff0000ffff);
    }
    for (int j = 0; j < 8; j += 2) exchange(x[j], x[j + 1], 8, 0x00ff00ff00ff00ff);
  } else {
    exchange(x[0], x[2], 32, 0x00000000ffffffff);
    exchange(x[1], x[3], 32, 0x00000000ffffffff);
    exchange(x[0], x[1], 16, 0x0000ffff0000ffff);
    exchange(x[2], x[3], 16, 0x0000ffff0000ffff);
  }
  for (int i = 0; i < rows; ++i) std::memcpy(target + i * target_stride, &x[i], 8);
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

template <int Bytes>
void transpose_block(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride,
                     int64_t across, int64_t along) {
  constexpr int64_t kSide = Bytes <= 2 ? 8 / Bytes : Bytes == 4 ? 4 : 1;
  constexpr int64_t kLine = 64 / Bytes;  // of the source, all of which is read while it is near
  int64_t whole_across = 0, whole_along = 0;
  if (kSide > 1) {
    whole_across = across / kSide * kSide;
    whole_along = along / kSide * kSide;
    for (int64_t line = 0; line < whole_across; line += kLine) {
      for (int64_t j = 0; j < whole_along; j += kSide) {
        for (int64_t i = line; i < std::min(line + kLine, whole_across); i += kSide) {
          const uint8_t* from = source + j * source_stride + i * Bytes;
          uint8_t* to = target + i * target_stride + j * Bytes;
          if (Bytes == 4) {
            transpose_words(from, source_stride, to, target_stride);
          } else {
            transpose_square(from, source_stride, to, target_stride, Bytes);
          }
        }
      }
    }
  }
  transpose_plain<Bytes>(source + whole_along * source_stride, source_stride, target + whole_along * Bytes,
                         target_stride, whole_across, along - whole_along);
  transpose_plain<Bytes>(source + whole_across * Bytes, source_stride, target + whole_across * target_stride,
                         target_stride, across - whole_across, along);
}

constexpr int64_t kCopyBlock = 64;  // elements per side of a transposed block: 64 cache lines at most

}  // namespace

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
  const auto block = chunk_ == 1   ? transpose_block<1>
                     : chunk_ == 2 ? transpose_block<2>
                     : chunk_ == 4 ? transpose_block<4>
                                   : transpose_block<8>;
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
