// matmul with weights in blocks: rows in 8 bits by the rules binary32_over_127, binary32_16_lanes, binary32_8_lanes and
// binary32_four_blocks, or real rows, whose weights become real numbers while running.
#include "operators/layers/block_product.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/layers/real_product.h"

namespace bittrue {
namespace {

constexpr int64_t kTaskColumns = 16;  // of a panel
constexpr int64_t kTaskRows = 16;     // of one task
constexpr size_t kBiasInput = 2, kScale = 5, kPoint = 6;

// Constant weights and what belongs to them.
struct BlockWeights {
  explicit BlockWeights(const Step& step)
      : columns(step.integer("n", 1, int64_t{1} << 31)),
        depth(step.integer("k", 1, int64_t{1} << 31)),
        bits(step.integer("bits", 2, 8)),
        length(step.integer("block_size", 16, 256)),
        blocks((depth + length - 1) / length) {
    const Operand &a = step.input(0), &q = step.input(1), &s = step.input(kScale), &out = step.output();
    require(a.type == Type::f32 && out.type == Type::f32 && a.dense() && out.dense(),
            "no native kernel for these types");
    require(bits != 6 && bits % 2 == 0 && length % 16 == 0, "weights of other bits");
    require(q.constant != nullptr && q.type == Type::u8 && q.elements == columns * blocks * row_bytes(length),
            "weights are computed");
    require(s.constant != nullptr && s.type == Type::f32 && s.elements == columns * blocks, "scales are computed");
    require(a.elements > 0 && a.elements % depth == 0 && out.elements == a.elements / depth * columns,
            "the shapes do not fit");
    rows = a.elements / depth;
    numbers = static_cast<const uint8_t*>(q.constant);
    scales.resize(static_cast<size_t>(s.elements));
    std::memcpy(scales.data(), s.constant, scales.size() * 4);
    points.assign(scales.size(), static_cast<float>(1 << (bits - 1)));
    if (!step.has_input(kPoint) || step.integer("points_ignored", 0, 1) != 0) return;
    const Operand& p = step.input(kPoint);
    require(p.constant != nullptr, "zero points are computed");
    real_points = p.type == Type::f32;
    require(
        real_points ? p.elements == columns * blocks : p.type == Type::u8 && p.elements == columns * row_bytes(blocks),
        "zero points have another form");
    if (real_points) {
      std::memcpy(points.data(), p.constant, points.size() * 4);
      return;
    }
    const auto* packed = static_cast<const uint8_t*>(p.constant);
    for (int64_t n = 0; n < columns; ++n) {
      for (int64_t b = 0; b < blocks; ++b) {
        points[n * blocks + b] = static_cast<float>(part(packed + n * row_bytes(blocks), b));
      }
    }
  }

  int64_t row_bytes(int64_t count) const { return (count * bits + 7) / 8; }
  int part(const uint8_t* packed, int64_t i) const {
    return packed[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
  }
  int number(int64_t n, int64_t k) const { return part(numbers + n * blocks * row_bytes(length), k); }
  float scale(int64_t n, int64_t b) const { return scales[n * blocks + b]; }
  float point(int64_t n, int64_t b) const { return points[n * blocks + b]; }

  int64_t columns, depth, bits, length, blocks;
  int64_t rows = 0;
  const uint8_t* numbers = nullptr;
  std::vector<float> scales, points;  // [columns][blocks]
  bool real_points = false;
};

// f(column within the panel, column) for the columns that panel `p` has.
template <class Function>
void each_column(const BlockWeights& w, int64_t p, Function&& f) {
  for (int64_t c = 0; c < std::min(kTaskColumns, w.columns - p * kTaskColumns); ++c) f(c, p * kTaskColumns + c);
}

// The largest |x| as bits, which order as numbers do: below kExponentOfOnes, all of them are finite.
constexpr int32_t kExponentOfOnes = 0x7F800000;
int32_t largest_bits(const float* x, int64_t count) {
  int32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    int32_t bits;
    std::memcpy(&bits, x + i, 4);
    largest = std::max(largest, bits & 0x7FFFFFFF);
  }
  return largest;
}

// Panels of columns, rows in blocks, shared out among threads.
class Panels : public BlockProductOfRows {
 public:
  Panels(const BlockWeights& w, const CoreSet& cores)
      : core_(cores.block_product()),
        real_(cores.real_matmul()),
        columns_(w.columns),
        depth_(w.depth),
        length_(w.length),
        blocks_(w.blocks),
        panels_((columns_ + kTaskColumns - 1) / kTaskColumns) {}
  int64_t scratch_bytes(int threads, int64_t rows) const final { return shared_bytes(rows) + threads * worker_bytes(); }

 protected:
  virtual int64_t shared_bytes(int64_t rows) const { return (void)rows, 0; }
  virtual int64_t worker_bytes() const = 0;
  // Rows first to first + count of panel `p`; false where an infinity or a NaN arises.
  virtual bool multiply(const Given& given, int64_t first, int64_t count, int64_t p, uint8_t* scratch) const = 0;

  uint8_t* worker(const Given& given, int index) const {
    return given.scratch + shared_bytes(given.rows) + index * worker_bytes();
  }

  bool share(const Given& given) const {
    const int64_t row_blocks = (given.rows + kTaskRows - 1) / kTaskRows,
                  work = std::min(given.rows, kTaskRows) * kTaskColumns * depth_;
    const int64_t most = std::max<int64_t>(1, kTaskMostWork / work);
    const int threads = given.pool.threads();
    const int64_t wanted = row_blocks >= 4 * threads ? 1 : group_count(panels_, threads);
    const int64_t groups = std::min(panels_, std::max(wanted, (panels_ + most - 1) / most));
    const bool small = given.rows * columns_ * depth_ < 500000;
    std::atomic<bool> finite{true};
    given.pool.parallel(row_blocks * groups, small ? 1 : threads, [&](int64_t task, int index) {
      const int64_t group = task % groups, first = task / groups * kTaskRows;
      for (int64_t p = group * panels_ / groups; p < (group + 1) * panels_ / groups; ++p) {
        if (!multiply(given, first, std::min(kTaskRows, given.rows - first), p, worker(given, index))) {
          finite.store(false, std::memory_order_relaxed);
        }
      }
    });
    return finite.load(std::memory_order_relaxed);
  }

  // Adds to the sums of a panel what `terms` numbers of each row, `step` apart, and its weights give.
  void add_products(const float* rows, int64_t step, int64_t terms, int64_t count, const float* weights,
                    const float** pointers, float* sums) const {
    for (int64_t r = 0; r < count; ++r) pointers[r] = rows + r * step;
    RealRows given;
    given.rows = pointers;
    given.capacity = given.count = count;
    given.depth = terms;
    given.sums = sums;
    given.stride = kTaskColumns;
    real_.run_fused(given, weights, kTaskColumns);
  }

  // One row of a panel, with the bias.
  bool store(const Given& given, int64_t row, int64_t p, const float* sums) const {
    const int64_t used = std::min(kTaskColumns, columns_ - p * kTaskColumns);
    const float* bias = given.bias == nullptr ? nullptr : given.bias + p * kTaskColumns;
    float* out = given.out + row * columns_ + p * kTaskColumns;
    for (int64_t n = 0; n < used; ++n) out[n] = sums[n];
    for (int64_t n = 0; n < used && bias != nullptr; ++n) out[n] = out[n] + bias[n];
    return all_finite(out, used);
  }

  const BlockProduct& core_;
  const RealMatmul& real_;
  int64_t columns_, depth_, length_, blocks_, panels_;
};

// Rows in 8 bits, by what is done for a `single` one, or for several.
class IntegerBlocks final : public Panels {
 public:
  IntegerBlocks(const Step& step, const BlockWeights& w, bool single, const CoreSet& cores)
      : Panels(w, cores), bytes_(w.bits == 8) {
    require(step.rule("row_blocks") == "binary32_over_127" && !w.real_points, "no native rule for this slot");
    const std::string& rule = step.rule("block_product");
    four_blocks_ = rule == "binary32_four_blocks", eight_ = rule == "binary32_8_lanes";
    require(four_blocks_ || eight_ || rule == "binary32_16_lanes", "no native rule for this slot");
    subtracts_ = eight_ && single && w.bits == 4 && length_ >= 32;
    const bool pointed = subtracts_ && step.has_input(kPoint) && step.integer("points_ignored", 0, 1) == 0;
    require(four_blocks_ ? length_ == 32 || length_ == 64 || length_ == 128 : w.bits >= 4, "blocks of another length");
    four_blocks_ ? plan_four_blocks() : eight_ ? plan_steps_of_8(pointed) : plan_steps();
    step_bytes_ = bytes_ ? 512 : 256;
    numbers_.assign(static_cast<size_t>(panels_ * steps_ * step_bytes_), 0);
    scales_.assign(static_cast<size_t>(panels_ * blocks_ * kTaskColumns), 0.0f);
    moved_ = scales_;
    for (int64_t p = 0; p < panels_; ++p) {
      each_column(w, p, [&](int64_t c, int64_t n) {
        pack(w, n, numbers_.data() + p * steps_ * step_bytes_ + 4 * c);
        for (int64_t b = 0; b < blocks_; ++b) {
          const int64_t at = (p * blocks_ + b) * kTaskColumns + c;
          scales_[at] = w.scale(n, b);
          moved_[at] = subtracts_ ? w.point(n, b) : -(w.scale(n, b) * w.point(n, b));
        }
      });
    }
  }
  std::string note() const override { return "rows in 8 bits, weights in blocks"; }

  bool run(const Given& given) const override {
    const Rows rows = rows_in(given);
    std::atomic<bool> right{true};
    const int64_t each = std::max<int64_t>(1, 32768 / depth_), tasks = (given.rows + each - 1) / each;
    given.pool.parallel(tasks, [&](int64_t task, int index) {
      auto* values = reinterpret_cast<int8_t*>(worker(given, index));
      for (int64_t m = task * each; m < std::min(given.rows, (task + 1) * each); ++m) {
        if (!quantize(given.a + m * depth_, m, rows, values)) right.store(false, std::memory_order_relaxed);
      }
    });
    return right.load(std::memory_order_relaxed) && share(given);
  }

 private:
  // What was made of all rows: numbers in the order of steps, and by block their scales, and the scales times the sums.
  struct Rows {
    int8_t* numbers;  // [rows][32 * steps]
    float *scales, *sums;
    float* lanes;  // of a single row, [steps][4]
  };

  // Four quarters of the lanes, then what both halves of them add for blocks left over.
  void plan_steps() {
    const int64_t together = std::max<int64_t>(1, 128 / length_), whole = blocks_ / together * together;
    const int64_t pieces = std::max<int64_t>(1, length_ / 128), fours = length_ / 4;
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int64_t k = 0; k < whole; k += together) {
        for (int64_t piece = 0; piece < pieces; ++piece) {
          // Both halves of 128 bytes.
          const int64_t one = k * fours + piece * 32 + quarter * 4, two = one + 16;
          if (length_ >= 128) {
            add_step({one, one + 1, one + 2, one + 3}, {two, two + 1, two + 2, two + 3});
          } else {
            add_step({one, one + 1, two, two + 1}, {one + 2, one + 3, two + 2, two + 3});
          }
        }
      }
      if (length_ == 64) {
        for (int64_t k = whole; k < blocks_; ++k) {
          const int64_t one = k * fours + quarter * 4;
          add_step({one, one + 2, one + 1, one + 3}, {-1, -1, -1, -1});
        }
      }
      if (lanes() == 16) {
        end_part(-1, quarter);
      } else if (whole > 0) {
        end_part(-1, quarter % 2, quarter < 2 ? BlockPart::Then::keep : BlockPart::Then::add);
      }
    }
    for (int half = 0; half < 2 && lanes() == 8; ++half) {
      add_rest(whole, half);
      end_part(whole > 0 ? half : -1, half);
    }
  }

  // Both halves of 8 lanes.
  void plan_steps_of_8(bool pointed) {
    const int64_t fours = length_ / 4, together = length_ >= 64 || pointed ? 1 : 64 / length_;
    const int64_t whole = length_ >= 64 ? blocks_ : together > 1 ? blocks_ / together * together : 0;
    const auto neighbours = [&](int64_t one, int64_t two) {
      add_step({one, one + 2, two, two + 2}, {one + 1, one + 3, two + 1, two + 3});
    };
    for (int half = 0; half < 2; ++half) {
      for (int64_t k = 0; k < whole; k += together) {
        const int64_t one = k * fours + half * 4;
        if (length_ == 16) {
          neighbours(one, one + 2 * fours);
        } else if (length_ == 32) {
          neighbours(one, one + fours);
        } else {
          for (int64_t piece = one; piece < one + fours; piece += 16) {
            if (bytes_) {
              add_step({piece, piece + 1, piece + 2, piece + 3}, {piece + 8, piece + 9, piece + 10, piece + 11});
            } else {
              neighbours(piece, piece + 8);
            }
          }
        }
      }
      add_rest(whole, half);
      end_part(-1, half);
    }
  }

  // Blocks that are left over from `whole` on.
  void add_rest(int64_t whole, int half) {
    for (int64_t k = whole; k < blocks_; ++k) {
      const int64_t one = (k * length_ + half * 16) / 4;
      if (length_ == 32) {
        add_step({one, one + 1, one + 2, one + 3}, {-1, -1, -1, -1});
      } else {
        add_pairs(k * 16 + half * 8);
      }
    }
  }

  // By four lanes and four blocks: the first and the third, the second and the fourth block.
  void plan_four_blocks() {
    const int64_t fours = length_ / 4;
    for (int quarter = 0; quarter < lanes() / 4; ++quarter) {
      end_part(-1, quarter);
      for (int64_t k = 0; k < blocks_; k += 4) {
        for (int64_t side = 0; side < 2; ++side) {
          for (int64_t block = k + side; block < std::min(blocks_, k + 4); block += 2) {
            const int64_t one = block * fours + quarter * 4, two = one + 16;
            const bool both = length_ == 128;
            add_step({one, one + 1, one + 2, one + 3},
                     {both ? two : -1, both ? two + 1 : -1, both ? two + 2 : -1, both ? two + 3 : -1});
          }
          side == 0 ? end_part(-1, BlockPart::kSpare) : end_part(-1, quarter, BlockPart::Then::add_with_spare);
        }
      }
    }
  }

  void end_part(int from, int to, BlockPart::Then then = BlockPart::Then::keep) {
    int64_t before = 0;
    for (const BlockPart& part : parts_) before += part.steps;
    parts_.push_back({steps_ - before, from, to, then});
  }

  // Each lane's two fours of neighbours; -1: none.
  void add_step(std::array<int64_t, 4> first, std::array<int64_t, 4> second) {
    for (int lane = 0; lane < 4; ++lane) {
      for (const int64_t four : {first[lane], second[lane]}) {
        for (int64_t d = 0; d < 2; ++d) pairs_.push_back(four < 0 ? nothing() : static_cast<int32_t>(2 * four + d));
      }
    }
    finish_step(first[0] * 4, first[2] * 4);
  }
  // Each lane's two neighbours.
  void add_pairs(int64_t begin) {
    for (int lane = 0; lane < 4; ++lane) {
      for (int64_t d = 0; d < 4; ++d) pairs_.push_back(d > 0 ? nothing() : static_cast<int32_t>(begin / 2 + lane));
    }
    finish_step(begin, begin);
  }
  void finish_step(int64_t one, int64_t two) {
    step_blocks_.push_back(static_cast<int32_t>(one / length_));
    step_blocks_.push_back(static_cast<int32_t>(two / length_));
    ++steps_;
  }
  int32_t nothing() const { return static_cast<int32_t>(padded() / 2); }

  // Column `n`: the four bytes of a lane's first and second four lie 64 apart, or share bytes.
  [[gnu::hot]] void pack(const BlockWeights& w, int64_t n, uint8_t* to) const {
    for (int64_t t = 0; t < steps_; ++t, to += step_bytes_) {
      for (int64_t i = 0; i < 32; ++i) {
        const int64_t pair = pairs_[16 * t + i / 2], lane = i / 8, d = i % 4;
        if (pair == nothing()) continue;
        const auto number = static_cast<uint8_t>(w.number(n, 2 * pair + i % 2));
        const bool second = i % 8 >= 4;
        if (bytes_) {
          to[128 * lane + (second ? 64 : 0) + d] = number;
        } else {
          to[64 * lane + d] = static_cast<uint8_t>(to[64 * lane + d] | number << (second ? 4 : 0));
        }
      }
    }
  }

  int64_t padded() const { return blocks_ * length_; }
  int64_t row_scales(int64_t rows) const { return round_up(rows * blocks_ * 4, 64); }
  int64_t row_numbers(int64_t rows) const { return round_up(rows * 32 * steps_, 64); }
  int64_t lane_sums() const { return subtracts_ ? round_up(16 * steps_, 64) : 0; }
  int64_t shared_bytes(int64_t rows) const override { return row_numbers(rows) + 2 * row_scales(rows) + lane_sums(); }
  int64_t worker_bytes() const override { return round_up(padded() + 2, 64); }
  Rows rows_in(const Given& given) const {
    auto* scales = reinterpret_cast<float*>(given.scratch + row_numbers(given.rows));
    const int64_t floats = row_scales(given.rows) / 4;
    return {reinterpret_cast<int8_t*>(given.scratch), scales, scales + floats, scales + 2 * floats};
  }

  // False where a number is not finite, or too small to have an inverse.
  bool quantize(const float* row, int64_t m, const Rows& rows, int8_t* values) const {
    constexpr float kWhole = 12582912.0f;  // sums with it are integers, rounded to even
    std::memset(values + depth_, 0, static_cast<size_t>(padded() + 2 - depth_));
    for (int64_t b = 0; b < blocks_; ++b) {
      const int64_t begin = b * length_, end = std::min(depth_, begin + length_);
      const int32_t bits = largest_bits(row + begin, end - begin);
      float largest;
      std::memcpy(&largest, &bits, 4);
      const float scale = largest / 127.0f, inverse = largest != 0.0f ? 127.0f / largest : 0.0f;
      if (bits >= kExponentOfOnes || std::isinf(inverse)) return false;
      int32_t sum = 0;
      for (int64_t k = begin; k < end; ++k) {
        const auto value = static_cast<int32_t>((row[k] * inverse + kWhole) - kWhole);
        values[k] = static_cast<int8_t>(value);
        sum += value;
      }
      rows.scales[m * blocks_ + b] = scale;
      rows.sums[m * blocks_ + b] = scale * static_cast<float>(sum);
    }
    int8_t* to = rows.numbers + m * 32 * steps_;
    for (int64_t i = 0; i < 16 * steps_; ++i) std::memcpy(to + 2 * i, values + 2 * pairs_[i], 2);
    for (int64_t lane = 0; lane < (subtracts_ ? 4 * steps_ : 0); ++lane) {
      int32_t sum = 0;
      for (int64_t i = 8 * lane; i < 8 * lane + 8; ++i) sum += to[i];
      rows.lanes[lane] = static_cast<float>(sum);
    }
    return true;
  }

  bool multiply(const Given& given, int64_t first, int64_t count, int64_t p, uint8_t*) const override {
    const Rows rows = rows_in(given);
    const int64_t column = p * kTaskColumns;
    float bias[kTaskColumns] = {};
    BlockRows panel;
    panel.rows = rows.numbers + first * 32 * steps_;
    panel.row_step = 32 * steps_;
    panel.count = count;
    panel.scales = rows.scales + first * blocks_;
    panel.row_sums = rows.sums + first * blocks_;
    panel.lane_sums = subtracts_ ? rows.lanes : nullptr;
    panel.blocks = blocks_;
    panel.step_blocks = step_blocks_.data();
    panel.parts = parts_.data();
    panel.part_count = static_cast<int64_t>(parts_.size());
    panel.lanes = lanes();
    panel.crossed = length_ == 64 && !four_blocks_ && !eight_;
    // Pairs of rows of long blocks, and the columns beyond the last four, are folded by halves.
    const bool in_pairs = !eight_ && length_ >= (bytes_ ? 128 : 64);
    panel.by_halves = in_pairs ? std::max<int64_t>(0, given.rows / 2 * 2 - first) : 0;
    panel.by_fours = four_blocks_ ? 0 : std::clamp<int64_t>(columns_ / 4 * 4 - column, 0, kTaskColumns);
    panel.used = std::min(kTaskColumns, columns_ - column);
    if (given.bias != nullptr) std::copy_n(given.bias + column, panel.used, bias);
    panel.bias = given.bias != nullptr ? bias : nullptr;
    panel.out = given.out + first * columns_ + column;
    panel.out_step = columns_;
    const int64_t at = p * blocks_ * kTaskColumns;
    return (bytes_ ? core_.run_8 : core_.run_4)(panel, numbers_.data() + p * steps_ * step_bytes_, scales_.data() + at,
                                                moved_.data() + at);
  }

  int lanes() const { return length_ < 64 || eight_ ? 8 : 16; }

  bool bytes_;
  int64_t steps_ = 0, step_bytes_ = 0;
  std::vector<BlockPart> parts_;
  bool four_blocks_ = false, eight_ = false;
  bool subtracts_ = false;                    // zero points from a single row's products, before they are scaled
  std::vector<int32_t> pairs_, step_blocks_;  // [steps][16], [steps][2]
  std::vector<uint8_t> numbers_;              // [panels][steps][step_bytes]
  std::vector<float> scales_, moved_;         // [panels][blocks][16]
};

// Real rows; weights of 4 bits become real numbers while running. A single row has 16 or 8 lanes of sums, others one.
class RealBlocks final : public Panels {
 public:
  RealBlocks(const Step& step, const BlockWeights& w, const CoreSet& cores) : Panels(w, cores) {
    const std::string& rule = step.rule("real_product");
    if (rule == "binary32_fused_blocks_of_8") lanes_ = 8;
    const bool alike = rule == "binary32_fused_blocks_alike" && w.rows > 1;
    require(lanes_ == 8 || alike || rule == "binary32_fused_blocks", "no native rule for this slot");
    pairs_ = (depth_ + 1) / 2;
    numbers_.assign(static_cast<size_t>(panels_ * pairs_ * kTaskColumns), 0);
    scales_.assign(static_cast<size_t>(panels_ * blocks_ * kTaskColumns), 0.0f);
    points_ = scales_;
    pack(w);
  }
  std::string note() const override { return "real rows, weights in blocks"; }
  bool run(const Given& given) const override { return share(given); }

 private:
  [[gnu::hot]] void pack(const BlockWeights& w) {
    for (int64_t p = 0; p < panels_; ++p) {
      each_column(w, p, [&](int64_t c, int64_t n) {
        uint8_t* to = numbers_.data() + p * pairs_ * kTaskColumns + c;
        for (int64_t k = 0; k < depth_; ++k) {
          to[k / 2 * kTaskColumns] = static_cast<uint8_t>(to[k / 2 * kTaskColumns] | w.number(n, k) << (k % 2 * 4));
        }
        for (int64_t b = 0; b < blocks_; ++b) {
          scales_[(p * blocks_ + b) * kTaskColumns + c] = w.scale(n, b);
          points_[(p * blocks_ + b) * kTaskColumns + c] = w.point(n, b);
        }
      });
    }
  }

  int64_t worker_bytes() const override {
    return kTaskRows * 8 + (std::max<int64_t>(kTaskRows, 16) + length_) * kTaskColumns * 4;
  }

  bool multiply(const Given& given, int64_t first, int64_t count, int64_t p, uint8_t* scratch) const override {
    const float* a = given.a + first * depth_;
    auto* sums = reinterpret_cast<float*>(scratch + kTaskRows * 8);
    const uint8_t* numbers = numbers_.data() + p * pairs_ * kTaskColumns;
    const float* scales = scales_.data() + p * blocks_ * kTaskColumns;
    const float* points = points_.data() + p * blocks_ * kTaskColumns;
    std::fill_n(sums, std::max<int64_t>(kTaskRows, 16) * kTaskColumns, 0.0f);
    if (given.rows == 1) {
      core_.run_row(a, depth_, length_, lanes_, numbers, scales, points, sums);
      return store_row(given, p, sums);
    }
    const auto** pointers = reinterpret_cast<const float**>(scratch);
    float* weights = sums + std::max<int64_t>(kTaskRows, 16) * kTaskColumns;
    for (int64_t b = 0; b < blocks_; ++b) {
      const int64_t begin = b * length_, terms = std::min(length_, depth_ - begin);
      core_.unpack(terms, numbers + begin / 2 * kTaskColumns, scales + b * kTaskColumns, points + b * kTaskColumns,
                   weights);
      add_products(a + begin, depth_, terms, count, weights, pointers, sums);
    }
    bool finite = true;
    for (int64_t r = 0; r < count; ++r) finite = store(given, first + r, p, sums + r * kTaskColumns) && finite;
    return finite;
  }

  bool store_row(const Given& given, int64_t p, const float* sums) const {
    float result[kTaskColumns];
    core_.fold(sums, lanes_, std::clamp<int64_t>(columns_ / 4 * 4 - p * kTaskColumns, 0, kTaskColumns), result);
    return store(given, 0, p, result);
  }

  int64_t pairs_ = 0;
  int lanes_ = 16;
  std::vector<uint8_t> numbers_;        // [panels][pairs of terms][16]
  std::vector<float> scales_, points_;  // [panels][blocks][16]
};

// BlockWeights that became real numbers once: a product of two matrices, of which the second lies transposed.
class Unpacked final : public Kernel {
 public:
  Unpacked(const Step& step, const BlockWeights& w, const CoreSet& cores) {
    unpack(w, w.real_points && step.rule("multiply_add") == "rounded_once");
    const Operand a = matrix(w.rows, w.depth), out = matrix(w.rows, w.columns);
    Operand b = matrix(w.columns, w.depth);
    b.constant = values_.data();
    Step product = step;
    product.inputs = {&a, &b};
    if (step.has_input(kBiasInput)) product.inputs.push_back(step.inputs[kBiasInput]);
    product.outputs = {&out};
    // Without fused lanes this rule is that of 16 lanes.
    std::string& rule = product.rules["real_product"];
    if (rule == "binary32_fused_blocks_of_8") rule = "binary32_fused_blocks";
    product.integers["transpose_b"] = product.integers["turned_b"] = {1};
    product.integers["transpose_a"] = product.integers["apart"] = {0};
    product.reals["alpha"] = product.reals["beta"] = 1.0;
    kernel_ = make_real_product(product, cores);
  }
  int64_t scratch_bytes(int threads) const override { return kernel_->scratch_bytes(threads); }
  bool tells_nan() const override { return true; }
  bool packs(size_t input) const override { return input == 1 || input == kScale || input == kPoint; }
  std::string note() const override { return kernel_->note(); }
  void run(const Run& run) const override {
    // Kernels read what they do not change.
    uint8_t* const inputs[] = {run.inputs[0], reinterpret_cast<uint8_t*>(const_cast<float*>(values_.data())),
                               run.inputs[kBiasInput]};
    kernel_->run({inputs, run.outputs, run.scratch, run.pool});
  }

 private:
  // Real zero points times scales are subtracted before they are rounded, if `once`.
  [[gnu::hot]] void unpack(const BlockWeights& w, bool once) {
    values_.resize(static_cast<size_t>(w.columns * w.depth));
    for (int64_t n = 0; n < w.columns; ++n) {
      for (int64_t k = 0; k < w.depth; ++k) {
        const auto number = static_cast<float>(w.number(n, k));
        const float scale = w.scale(n, k / w.length), point = w.point(n, k / w.length);
        values_[n * w.depth + k] = !w.real_points ? (number - point) * scale
                                   : once         ? std::fma(-scale, point, number * scale)
                                                  : number * scale - scale * point;
      }
    }
  }

  static Operand matrix(int64_t rows, int64_t columns) {
    Operand operand;
    operand.type = Type::f32;
    operand.shape = {rows, columns};
    operand.elements = rows * columns;
    operand.row_stride = columns * 4;
    return operand;
  }

  std::vector<float> values_;  // [columns][depth]
  std::unique_ptr<Kernel> kernel_;
};

// Such a product as a step of its own.
class BlockProductKernel final : public Kernel {
 public:
  BlockProductKernel(const Step& step, int64_t rows, std::unique_ptr<BlockProductOfRows> product)
      : rows_(rows), biased_(step.has_input(kBiasInput)), product_(std::move(product)) {
    if (!biased_) return;
    const Operand& bias = step.input(kBiasInput);
    require(bias.type == Type::f32 && bias.dense() && bias.elements == step.integer("n"), "the bias has another form");
  }
  bool tells_nan() const override { return true; }
  bool packs(size_t input) const override { return input == 1 || input == kScale || input == kPoint; }
  int64_t scratch_bytes(int threads) const override { return product_->scratch_bytes(threads, rows_); }
  std::string note() const override { return product_->note(); }
  void run(const Run& run) const override {
    const auto* bias = biased_ ? reinterpret_cast<const float*>(run.inputs[kBiasInput]) : nullptr;
    // What becomes of infinities and NaN is the reference's to tell.
    if (!product_->run({run.pool, reinterpret_cast<const float*>(run.inputs[0]), rows_, bias,
                        reinterpret_cast<float*>(run.outputs[0]), run.scratch})) {
      throw Undefined();
    }
  }

 private:
  int64_t rows_;
  bool biased_;
  std::unique_ptr<BlockProductOfRows> product_;
};

std::unique_ptr<BlockProductOfRows> of_rows(const Step& step, const BlockWeights& weights, bool single,
                                            const CoreSet& cores) {
  if (step.rules.count("block_product") == 0) return std::make_unique<RealBlocks>(step, weights, cores);
  return std::make_unique<IntegerBlocks>(step, weights, single, cores);
}

}  // namespace

std::unique_ptr<BlockProductOfRows> make_block_rows(const Step& step, bool single, const CoreSet& cores) {
  return of_rows(step, BlockWeights(step), single, cores);
}

std::unique_ptr<Kernel> make_block_product(const Step& step, const CoreSet& cores) {
  const BlockWeights weights(step);
  if (step.rules.count("block_product") == 0 && step.integer("packed", 0, 1) == 0) {
    return std::make_unique<Unpacked>(step, weights, cores);
  }
  return std::make_unique<BlockProductKernel>(step, weights.rows, of_rows(step, weights, weights.rows == 1, cores));
}

}  // namespace bittrue
