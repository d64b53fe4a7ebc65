#include "operators/movement/table_copy.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/share.h"
#include "operators/core/interleave.h"

namespace bittrue {
namespace {

template <int Bytes>
void pick_fixed(const uint8_t* source, const int64_t* offsets, uint8_t* target, int64_t stride, int64_t count,
                int64_t) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(target + i * stride, source + offsets[i], Bytes);
}

// Between Bytes and 2 * Bytes: two pieces that overlap.
template <int Bytes>
void pick_twice(const uint8_t* source, const int64_t* offsets, uint8_t* target, int64_t stride, int64_t count,
                int64_t chunk) {
  for (int64_t i = 0; i < count; ++i) {
    uint8_t first[Bytes], second[Bytes];
    std::memcpy(first, source + offsets[i], Bytes);
    std::memcpy(second, source + offsets[i] + chunk - Bytes, Bytes);
    std::memcpy(target + i * stride, first, Bytes);
    std::memcpy(target + i * stride + chunk - Bytes, second, Bytes);
  }
}

void pick_any(const uint8_t* source, const int64_t* offsets, uint8_t* target, int64_t stride, int64_t count,
              int64_t chunk) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(target + i * stride, source + offsets[i], static_cast<size_t>(chunk));
  }
}

// Neighbours in the source, each twice.
template <class T, class Vector>
void pick_doubled(const uint8_t* source, const int64_t* offsets, uint8_t* target, int64_t, int64_t count, int64_t) {
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(T);
  source += offsets[0];
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes, source += sizeof(Vector), target += 2 * sizeof(Vector)) {
    Vector x;
    std::memcpy(&x, source, sizeof x);
    const Vector both[2] = {interleave_low(x, x), interleave_high(x, x)};
    std::memcpy(target, both, sizeof both);
  }
  for (; i < count; i += 2, source += sizeof(T), target += 2 * sizeof(T)) {
    std::memcpy(target, source, sizeof(T));
    std::memcpy(target + sizeof(T), source, sizeof(T));
  }
}

}  // namespace

TableCopy::TableCopy(std::vector<TableAxis> axes, int64_t chunk)
    : TableCopy({std::make_move_iterator(axes.begin()), std::make_move_iterator(axes.end() - 1)},
                static_cast<int64_t>(axes.back().source.size()), axes.back().target, chunk) {
  last_ = std::move(axes.back().source);
  // The longest stretch that is one piece of the source.
  for (int64_t first = 0, end = 0; first < count_ && stride_ == chunk_; first = end) {
    for (end = first + 1; end < count_ && last_[end] == last_[end - 1] + chunk_;) ++end;
    if (end - first > std::max<int64_t>(3, piece_end_ - piece_)) piece_ = first, piece_end_ = end;
  }
  bool doubled = stride_ == chunk_ && count_ > 0 && count_ % 2 == 0;
  for (int64_t i = 0; i < count_ && doubled; ++i) doubled = last_[i] == last_[0] + i / 2 * chunk_;
  if (!doubled) return;
  if (chunk_ == 1) copy_ = pick_doubled<uint8_t, Vector8>;
  if (chunk_ == 2) copy_ = pick_doubled<uint16_t, Vector16>;
  if (chunk_ == 4) copy_ = pick_doubled<uint32_t, Vector32>;
}

TableCopy::TableCopy(std::vector<TableAxis> outer, int64_t count, int64_t stride, int64_t chunk)
    : outer_(std::move(outer)), count_(count), stride_(stride), chunk_(chunk) {
  for (const TableAxis& axis : outer_) rows_ *= static_cast<int64_t>(axis.source.size());
  switch (chunk_) {
    case 1: copy_ = pick_fixed<1>; break;
    case 2: copy_ = pick_fixed<2>; break;
    case 3: copy_ = pick_fixed<3>; break;
    case 4: copy_ = pick_fixed<4>; break;
    case 8: copy_ = pick_fixed<8>; break;
    case 16: copy_ = pick_fixed<16>; break;
    default: copy_ = chunk_ < 8 ? pick_twice<4> : chunk_ < 16 ? pick_twice<8> : chunk_ < 32 ? pick_twice<16> : pick_any;
  }
}

// Not inlined: rows without a piece, which may be short, would wait for registers.
[[gnu::noinline]] void TableCopy::around_piece(const uint8_t* source, const int64_t* table, uint8_t* target,
                                               int64_t first, int64_t last) const {
  const int64_t low = std::clamp(piece_, first, last), high = std::clamp(piece_end_, low, last);
  copy_(source, table + first, target + first * stride_, stride_, low - first, chunk_);
  if (high > low) {
    std::memcpy(target + low * stride_, source + table[low], static_cast<size_t>((high - low) * chunk_));
  }
  copy_(source, table + high, target + high * stride_, stride_, last - high, chunk_);
}

void TableCopy::run(const uint8_t* source, const int64_t* table, uint8_t* target, ThreadPool& pool) const {
  if (count_ == 0 || chunk_ == 0 || rows_ == 0) return;
  constexpr int64_t kTaskBytes = 32 << 10;
  // A single row is cut into pieces of `part` positions.
  const int64_t wanted = std::max<int64_t>(1, kTaskBytes / chunk_);
  const int64_t part = rows_ >= 4 * pool.threads() ? count_ : std::min(count_, wanted);
  const int64_t parts = (count_ + part - 1) / part, units = rows_ * parts;
  int64_t tasks = pool.threads() > 1 ? rows_ * count_ * chunk_ / kTaskBytes : 1;
  tasks = cut(std::min<int64_t>(tasks, 4 * pool.threads()), rows_ * count_ * chunk_, kTaskMostBytes, units);
  pool.parallel(tasks, [&](int64_t task, int) {
    int64_t last_from = -1, last_to = 0;  // of a row that is whole and dense
    const TableAxis one{{0}, 0};
    const TableAxis& within = outer_.empty() ? one : outer_.back();
    const auto size = static_cast<int64_t>(within.source.size());
    for (int64_t unit = units * task / tasks, end = units * (task + 1) / tasks; unit < end;) {
      int64_t rest = unit / parts, from = 0, to = 0, place = rest % size;
      rest /= size;
      for (size_t a = outer_.empty() ? 0 : outer_.size() - 1; a-- > 0;) {
        const auto dimension = static_cast<int64_t>(outer_[a].source.size());
        from += outer_[a].source[rest % dimension];
        to += rest % dimension * outer_[a].target;
        rest /= dimension;
      }
      // Rows of the last axis but one follow without divisions, which take longer than short rows.
      for (int64_t own = unit % parts; unit < end && place < size; ++unit) {
        const int64_t row = from + within.source[place], at = to + place * within.target, first = own * part;
        if (++own == parts) own = 0, ++place;
        if (row == last_from) {
          std::memcpy(target + at, target + last_to, static_cast<size_t>(count_ * chunk_));
          continue;
        }
        if (parts == 1 && stride_ == chunk_) last_from = row, last_to = at;
        if (piece_end_ != 0) {
          around_piece(source + row, table, target + at, first, std::min(count_, first + part));
          continue;
        }
        copy_(source + row, table + first, target + at + first * stride_, stride_, std::min(part, count_ - first),
              chunk_);
      }
    }
  });
}

std::vector<int64_t> plain_table(int64_t dimension, int64_t step) {
  std::vector<int64_t> table(static_cast<size_t>(dimension));
  for (int64_t i = 0; i < dimension; ++i) table[i] = i * step;
  return table;
}

}  // namespace bittrue
