// mixture_of_experts: two layers of the experts that a row asks, whose weights are real numbers or become some while running,
// by the rule binary32_fused_blocks and the one with 8 lanes, or integers that meet integers or tables.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "arithmetic/elementary.h"
#include "arithmetic/heap.h"
#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/layers/block_product.h"
#include "operators/layers/fused_product.h"
#include "operators/layers/single_rows.h"
#include "rules/table_product.h"

namespace bittrue {
namespace {

enum ExpertInput : size_t { kExpertRows, kScores, kFirst, kSecond, kCounts = 10 };
// What belongs to a layer stands behind its weights, in steps of two.
enum LayerInput : size_t { kLayerBias = 2, kLayerScale = 4, kLayerPoint = 6 };

struct ExpertSizes {
  int64_t rows, experts, hidden, outer, inner, bits, block;

  explicit ExpertSizes(const Step& step)
      : rows(step.integer("rows", 1, kMost)),
        experts(step.integer("experts", 1, kMost)),
        hidden(step.integer("hidden", 1, kMost)),
        outer(step.integer("outer", 1, kMost)),
        inner(step.integer("inner", 1, kMost)),
        bits(step.integer("bits", 0, 8)),
        block(step.integer("block_size", 0, kMost)) {
    require(bits == 0 || bits == 2 || bits == 4 || bits == 8, "weights of other bits");
  }
  static constexpr int64_t kMost = 1 << 24;
};

// One of the two layers, for any expert.
class ExpertLayer {
 public:
  ExpertLayer(const Step& step, const CoreSet& cores, const ExpertSizes& s, size_t input, int64_t depth,
              int64_t columns)
      : taps_(cores.real_taps_fused()),
        input_(input),
        depth_(depth),
        columns_(columns),
        bits_(s.bits),
        block_(s.block),
        blocks_(s.block > 0 ? (depth + s.block - 1) / s.block : 1),
        way_(step.text(input == kFirst ? "first_way" : "second_way")),
        fused_(way_ == "fused"),
        by_columns_(way_ == "columns"),
        product_(cores.real_matmul(), depth, columns, 1.0f,
                 fused_ ? depth : FusedProduct::block_of(depth, columns, false)) {
    by_integers_ = way_ == "integers", by_tables_ = way_ == "tables";
    require(fused_ || by_columns_ || by_integers_ || by_tables_ || way_ == "rows", "no native way of products");
    const std::string& rule = step.rule("real_product");
    lanes_ = rule == "binary32_fused_blocks_of_8" ? 8 : 16;
    require(lanes_ == 8 || rule == "binary32_fused_blocks", "no native rule for this slot");
    require(!fused_ || depth % lanes_ == 0, "blocks of another length");
    require(!by_columns_ || columns > 1, "a single column");
    each_ = bits_ > 0 ? 8 / bits_ : 1;
    require(depth % each_ == 0, "weights do not fill bytes");
    has_bias_ = given(step, kLayerBias, Type::f32, s.experts * columns);
    const bool scaled = given(step, kLayerScale, Type::f32, s.experts * columns * blocks_);
    require(scaled == (bits_ > 0), "scales have another form");
    point_bytes_ = block_ > 0 ? columns * ((blocks_ + each_ - 1) / each_) : (columns + each_ - 1) / each_;
    has_points_ = given(step, kLayerPoint, Type::u8, s.experts * point_bytes_);
    const Operand& weights = step.input(input);
    require(weights.dense() && weights.type == (bits_ > 0 ? Type::u8 : Type::f32) &&
                weights.elements == s.experts * columns * depth / each_,
            "weights have another form");
    packed_ = by_integers_ || (fused_ && bits_ == 4 && block_ % 16 == 0 && block_ <= 256);
    if (packed_) pack(step, cores, s);
    if (!by_tables_) return;
    require(step.rule("table_product") == "binary32_tables_of_fours", "no native rule for this slot");
    require(bits_ == 2 && (block_ == 32 || block_ == 64 || block_ == 128 || block_ == 256 || block_ == 512) &&
                depth % block_ == 0,
            "blocks of another length");
  }

  bool packs(size_t input) const {
    return packed_ && (input == input_ || input == input_ + kLayerScale || input == input_ + kLayerPoint);
  }
  // For up to `rows` rows.
  int64_t scratch_bytes(int threads, int64_t rows) const {
    int64_t most = 0;
    for (const auto* products : {&single_, &several_}) {
      if (!products->empty()) most = std::max(most, products->front()->scratch_bytes(threads, rows));
    }
    if (packed_) return most;
    if (by_tables_) return rows * table_bytes() + threads * point_floats() * 4;
    return shared_bytes() + threads * worker_bytes();
  }

  // `count` rows that lie side by side. False where a result is no finite number.
  bool run(const Run& run, int64_t expert, const float* rows, int64_t count, float* out, uint8_t* shared) const {
    const float* bias = nullptr;
    if (has_bias_) bias = reinterpret_cast<const float*>(run.inputs[input_ + kLayerBias]) + expert * columns_;
    if (packed_) {
      const auto& products = count == 1 && !single_.empty() ? single_ : several_;
      return products[expert]->run({run.pool, rows, count, bias, out, shared});
    }
    if (by_tables_) return look_up(run, expert, rows, count, bias, out, shared);
    uint8_t* own = shared + shared_bytes();
    auto* weights = reinterpret_cast<float*>(shared);
    float* packed = weights + weight_floats();
    std::atomic<bool> finite{true};
    run.pool.parallel(product_.panels(), [&](int64_t p, int worker) {
      uint8_t* scratch = own + worker * worker_bytes();
      const int64_t first = p * product_.panel(), used = std::min(product_.panel(), columns_ - first);
      const float* matrix =
          bits_ == 0 ? reinterpret_cast<const float*>(run.inputs[input_]) + expert * columns_ * depth_ : weights;
      for (int64_t n = first; bits_ > 0 && n < first + used; ++n) unpack(run, expert, n, weights + n * depth_);
      bool right = true;
      if (count > 1 || by_columns_) product_.pack(matrix, true, p, packed);
      if (count > 1) {
        for (int64_t r = 0; r < count; r += FusedProduct::kMostRows) {
          const int64_t some = std::min(FusedProduct::kMostRows, count - r);
          right &= product_.multiply(rows + r * depth_, some, packed, p, {}, out + r * columns_, columns_,
                                     scratch + worker_bytes() - product_.worker_bytes());
        }
      } else {
        one_row(rows, matrix + first * depth_, packed + first * depth_, first, used, p, out + first, scratch);
      }
      for (int64_t r = 0; r < count; ++r) {
        float* row = out + r * columns_ + first;
        for (int64_t n = 0; n < used && bias != nullptr; ++n) row[n] = row[n] + bias[first + n];
        right &= all_finite(row, used);
      }
      if (!right) finite.store(false, std::memory_order_relaxed);
    });
    return finite.load(std::memory_order_relaxed);
  }

 private:
  bool given(const Step& step, size_t place, Type type, int64_t elements) const {
    if (!step.has_input(input_ + place)) return false;
    const Operand& operand = step.input(input_ + place);
    require(operand.type == type && operand.dense() && operand.elements == elements, "an operand has another form");
    return true;
  }

  int64_t shared_bytes() const { return round_up((weight_floats() + product_.matrix_numbers()) * 4, 64); }
  int64_t worker_bytes() const { return round_up(2 * (depth_ / 8 + 1) * 8, 64) + product_.worker_bytes(); }
  int64_t weight_floats() const { return bits_ > 0 ? columns_ * depth_ : 0; }

  // Every expert's product with blocks, as if it were a step of its own.
  void pack(const Step& step, const CoreSet& cores, const ExpertSizes& s) {
    Operand a, weights = step.input(input_), scales = step.input(input_ + kLayerScale), points, out;
    require(weights.constant != nullptr && scales.constant != nullptr, "weights are computed");
    a.type = out.type = Type::f32;
    a.shape = {1, depth_}, a.elements = depth_, a.row_stride = depth_ * 4;
    out.shape = {1, columns_}, out.elements = columns_, out.row_stride = columns_ * 4;
    weights.elements = columns_ * depth_ / each_, scales.elements = columns_ * blocks_;
    Step product = step;
    product.inputs = {&a, &weights, nullptr, nullptr, nullptr, &scales};
    product.outputs = {&out};
    product.integers["n"] = {columns_}, product.integers["k"] = {depth_};
    product.integers["points_ignored"] = {0};
    if (!by_integers_) product.rules.erase("block_product");
    if (has_points_) {
      points = step.input(input_ + kLayerPoint);
      require(points.constant != nullptr, "zero points are computed");
      points.elements = point_bytes_;
      product.inputs.push_back(&points);
    }
    // One row has products of its own where these look at zero points.
    const bool alone = by_integers_ && product.rule("block_product") == "binary32_8_lanes" && bits_ == 4;
    for (int64_t expert = 0; expert < s.experts; ++expert) {
      if (alone) single_.push_back(make_block_rows(product, true, cores));
      several_.push_back(make_block_rows(product, false, cores));
      const auto on = [](Operand& operand, int64_t bytes) {
        operand.constant = static_cast<const uint8_t*>(operand.constant) + bytes;
      };
      on(weights, weights.elements), on(scales, scales.elements * 4);
      if (has_points_) on(points, point_bytes_);
    }
  }

  int64_t group() const { return std::min<int64_t>(block_, 64); }
  // Of a row, and of the zero points of a column.
  int64_t table_bytes() const { return round_up(depth_ * 4 + 2 * (depth_ / group()) * 4, 64); }
  int64_t point_floats() const { return round_up(blocks_, 16); }
  rules::TablesOfFours tables(uint8_t* shared, int64_t row) const {
    uint8_t* from = shared + row * table_bytes();
    auto* scales = reinterpret_cast<float*>(from + depth_ * 4);
    return {reinterpret_cast<int8_t*>(from), scales, scales + depth_ / group()};
  }

  bool look_up(const Run& run, int64_t expert, const float* rows, int64_t count, const float* bias, float* out,
               uint8_t* shared) const {
    std::atomic<bool> finite{true};
    run.pool.parallel(count, [&](int64_t r, int) {
      if (!rules::make_tables_of_fours(rows + r * depth_, depth_, group(), tables(shared, r))) {
        finite.store(false, std::memory_order_relaxed);
      }
    });
    if (!finite.load(std::memory_order_relaxed)) return false;
    const int64_t tasks = (columns_ + 15) / 16;
    run.pool.parallel(tasks, [&](int64_t task, int worker) {
      auto* given = reinterpret_cast<float*>(shared + count * table_bytes()) + worker * point_floats();
      for (int64_t n = task * 16; n < std::min(columns_, (task + 1) * 16); ++n) {
        const uint8_t* column = run.inputs[input_] + (expert * columns_ + n) * depth_ / each_;
        const auto* scales =
            reinterpret_cast<const float*>(run.inputs[input_ + kLayerScale]) + (expert * columns_ + n) * blocks_;
        for (int64_t b = 0; has_points_ && b < blocks_; ++b) {
          const uint8_t* points = run.inputs[input_ + kLayerPoint] + expert * point_bytes_;
          given[b] = static_cast<float>(part(points + n * ((blocks_ + each_ - 1) / each_), b));
        }
        for (int64_t r = 0; r < count; ++r) {
          float& to = out[r * columns_ + n];
          to = rules::row_by_tables(tables(shared, r), column, depth_, group(), block_, scales,
                                    has_points_ ? given : nullptr);
          if (bias != nullptr) to = to + bias[n];
          if (!all_finite(&to, 1)) finite.store(false, std::memory_order_relaxed);
        }
      }
    });
    return finite.load(std::memory_order_relaxed);
  }

  int part(const uint8_t* packed, int64_t i) const {
    return packed[i / each_] >> (i % each_ * bits_) & ((1 << bits_) - 1);
  }

  // The real numbers of one column.
  void unpack(const Run& run, int64_t expert, int64_t n, float* to) const {
    const uint8_t* from = run.inputs[input_] + (expert * columns_ + n) * depth_ / each_;
    const auto* scales =
        reinterpret_cast<const float*>(run.inputs[input_ + kLayerScale]) + (expert * columns_ + n) * blocks_;
    const uint8_t* points = has_points_ ? run.inputs[input_ + kLayerPoint] + expert * point_bytes_ : nullptr;
    const int64_t length = block_ > 0 ? block_ : depth_;
    for (int64_t b = 0; b < blocks_; ++b) {
      int point = 1 << (bits_ - 1);
      if (points != nullptr) {
        point = block_ > 0 ? part(points + n * ((blocks_ + each_ - 1) / each_), b) : part(points, n);
      }
      const int64_t begin = b * length, end = std::min(depth_, begin + length);
      const float scale = scales[b];
      if (bits_ == 8) {
        for (int64_t k = begin; k < end; ++k) to[k] = static_cast<float>(from[k] - point) * scale;
      } else if (bits_ == 4 && begin % 2 == 0 && end % 2 == 0) {
        for (int64_t k = begin / 2; k < end / 2; ++k) {
          to[2 * k] = static_cast<float>((from[k] & 15) - point) * scale;
          to[2 * k + 1] = static_cast<float>((from[k] >> 4) - point) * scale;
        }
      } else {
        for (int64_t k = begin; k < end; ++k) to[k] = static_cast<float>(part(from, k) - point) * scale;
      }
    }
  }

  // A single row times the columns of a panel.
  void one_row(const float* row, const float* matrix, const float* packed, int64_t first, int64_t used, int64_t p,
               float* out, uint8_t* scratch) const {
    if (by_columns_) {
      std::fill_n(out, used, 0.0f);
      return add_fours(row, packed, product_.width(p), depth_, used, out);
    }
    if (!fused_) return sums_of_lanes_of_eight(matrix, row, depth_, used, out);
    auto** left = reinterpret_cast<const float**>(scratch);
    const int64_t terms = depth_ / lanes_;
    const float** right = left + terms;
    for (int64_t t = 0; t < terms; ++t) left[t] = row + t * lanes_;
    for (int64_t n = 0; n < used; ++n) {
      float lanes[16] = {};
      for (int64_t t = 0; t < terms; ++t) right[t] = matrix + n * depth_ + t * lanes_;
      taps_(left, right, terms, lanes_, lanes);
      out[n] = folded(lanes, first + n < columns_ / 4 * 4);
    }
  }

  float folded(const float* lanes, bool by_fours) const {
    float each[4];
    if (by_fours) {
      for (int q = 0; q < lanes_ / 4; ++q) {
        const float* e = lanes + 4 * q;
        each[q] = ((e[0] + e[1]) + e[2]) + e[3];
      }
      return lanes_ == 8 ? each[0] + each[1] : (each[0] + each[2]) + (each[1] + each[3]);
    }
    for (int i = 0; i < 4; ++i) {
      const float* e = lanes + i;
      each[i] = lanes_ == 8 ? e[0] + e[4] : (e[0] + e[8]) + (e[4] + e[12]);
    }
    return lanes_ == 8 ? (each[0] + each[1]) + (each[2] + each[3]) : (each[0] + each[2]) + (each[1] + each[3]);
  }

  RealTaps taps_;
  size_t input_;
  int64_t depth_, columns_, bits_, block_, blocks_, each_ = 1, point_bytes_ = 0;
  int lanes_ = 16;
  std::string way_;
  bool fused_, by_columns_, by_integers_ = false, packed_ = false, by_tables_ = false, has_bias_ = false,
                            has_points_ = false;
  FusedProduct product_;
  std::vector<std::unique_ptr<BlockProductOfRows>> single_, several_;  // of every expert
};

class MixtureOfExperts final : public Kernel {
 public:
  MixtureOfExperts(const Step& step, const CoreSet& cores)
      : s_(step),
        first_(step, cores, s_, kFirst, s_.hidden, s_.outer),
        second_(step, cores, s_, kSecond, s_.inner, s_.hidden),
        k_(step.integer("k", 1, s_.experts)),
        normalized_(step.integer("normalized", 0, 1) != 0),
        activation_(step.text("activation")) {
    require(step.rule("multiply_add") == "rounded_twice", "no native rule for this slot");
    const std::string& choice = step.rule("expert_choice");
    of_all_ = choice == "softmax_then_best", fewest_first_ = choice == "best_then_softmax_fewest_first";
    require(of_all_ || fewest_first_ || choice == "best_then_softmax", "no native rule for this slot");
#if !defined(__GLIBCXX__)
    require(of_all_, "another library sorts in another way");
#endif
    gated_ = activation_ == "swiglu";
    require(
        gated_ || activation_ == "relu" || activation_ == "gelu" || activation_ == "silu" || activation_ == "identity",
        "no native activation");
    require(s_.outer == (gated_ ? 2 : 1) * s_.inner, "the shapes do not fit");
    alpha_ = static_cast<float>(step.real("alpha")), beta_ = static_cast<float>(step.real("beta"));
    limit_ = static_cast<float>(step.real("limit"));
    const Operand &x = step.input(kExpertRows), &scores = step.input(kScores), &out = step.output();
    for (const Operand* operand : {&x, &scores, &out}) {
      require(operand->type == Type::f32 && operand->dense(), "no native kernel for these types");
    }
    require(x.elements == s_.rows * s_.hidden && out.elements == x.elements && scores.elements == s_.rows * s_.experts,
            "the shapes do not fit");
    counts_ = step.has_input(kCounts);
    require(!counts_ || (!of_all_ && step.input(kCounts).type == Type::f32 && step.input(kCounts).dense() &&
                         step.input(kCounts).elements == scores.elements),
            "what experts count has another form");
  }

  std::string note() const override { return "two layers of each expert that is asked"; }
  bool packs(size_t input) const override { return first_.packs(input) || second_.packs(input); }
  bool tells_nan() const override { return true; }
  int64_t scratch_bytes(int threads) const override {
    return choice_bytes() + row_bytes() +
           std::max(first_.scratch_bytes(threads, s_.rows), second_.scratch_bytes(threads, s_.rows));
  }

  void run(const Run& run) const override {
    const Choice choice = choice_in(run.scratch);
    choose(run, choice);
    auto* given = reinterpret_cast<float*>(run.scratch + choice_bytes());
    float *outer = given + s_.rows * s_.hidden, *inner = outer + s_.rows * s_.outer, *made = inner + s_.rows * s_.inner;
    uint8_t* shared = run.scratch + choice_bytes() + row_bytes();
    const auto* x = reinterpret_cast<const float*>(run.inputs[kExpertRows]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    std::fill_n(out, s_.rows * s_.hidden, 0.0f);
    for (int64_t i = 0; i < s_.experts; ++i) {
      const int32_t expert = choice.order[i];
      const int64_t count = choice.asked[expert];
      if (count == 0) continue;
      run.check();
      int64_t found = 0;
      for (int64_t place = 0; place < s_.rows * k_; ++place) {
        if (choice.experts[place] != expert) continue;
        choice.places[found] = static_cast<int32_t>(place);
        std::memcpy(given + found++ * s_.hidden, x + place / k_ * s_.hidden, static_cast<size_t>(s_.hidden) * 4);
      }
      if (!first_.run(run, expert, given, count, outer, shared)) throw Undefined();
      run.pool.parallel(count, [&](int64_t r, int) { activate(outer + r * s_.outer, inner + r * s_.inner); });
      if (!all_finite(inner, count * s_.inner) || !second_.run(run, expert, inner, count, made, shared)) {
        throw Undefined();
      }
      for (int64_t r = 0; r < count; ++r) {
        const float factor = choice.factors[choice.places[r]];
        float* to = out + choice.places[r] / k_ * s_.hidden;
        for (int64_t n = 0; n < s_.hidden; ++n) to[n] = to[n] + factor * made[r * s_.hidden + n];
      }
    }
    if (!all_finite(out, s_.rows * s_.hidden)) throw Undefined();
  }

 private:
  // Of every row: its experts, -1 where one is not asked, and what they count; of every expert: how many rows ask it, and which
  // expert comes when; the places of one expert's rows; shares of one row, and its experts in order.
  struct Choice {
    int32_t *experts, *asked, *order, *places, *best;
    float *factors, *shares;
  };

  int64_t choice_bytes() const { return round_up((3 * s_.rows * k_ + 4 * s_.experts) * 4, 64); }
  int64_t row_bytes() const { return round_up(s_.rows * (2 * s_.hidden + s_.outer + s_.inner) * 4, 64); }

  Choice choice_in(uint8_t* scratch) const {
    Choice c{};
    c.experts = reinterpret_cast<int32_t*>(scratch);
    c.places = c.experts + s_.rows * k_;
    c.factors = reinterpret_cast<float*>(c.places + s_.rows * k_);
    c.asked = reinterpret_cast<int32_t*>(c.factors + s_.rows * k_);
    c.order = c.asked + s_.experts, c.best = c.order + s_.experts;
    c.shares = reinterpret_cast<float*>(c.best + s_.experts);
    return c;
  }

  static float sum(const float* numbers, int64_t count) {
    float total = 0.0f;
    for (int64_t i = 0; i < count; ++i) total += numbers[i];
    return total;
  }
  static void multiply(float* numbers, int64_t count, float factor) {
    for (int64_t i = 0; i < count; ++i) numbers[i] = numbers[i] * factor;
  }
  static float inverse(float sum) { return sum == 0 ? 0.0f : 1.0f / sum; }

  void choose(const Run& run, const Choice& c) const {
    std::fill_n(c.asked, s_.experts, 0);
    for (int64_t row = 0; row < s_.rows; ++row) {
      const float* scores = reinterpret_cast<const float*>(run.inputs[kScores]) + row * s_.experts;
      const float* ranks = scores;
      if (of_all_) {
        // Scores that differ may have one share.
        float largest = scores[0];
        for (int64_t i = 1; i < s_.experts; ++i) largest = largest < scores[i] ? scores[i] : largest;
        for (int64_t i = 0; i < s_.experts; ++i) c.shares[i] = arithmetic::exp(scores[i] - largest);
        multiply(c.shares, s_.experts, 1.0f / sum(c.shares, s_.experts));
        ranks = c.shares;
      }
      // The larger one first, of equal ones the later expert.
      arithmetic::partial_sort(c.best, k_, s_.experts, [ranks](int32_t a, int32_t b) {
        return ranks[b] < ranks[a] || (ranks[a] == ranks[b] && b < a);
      });
      float* factors = c.factors + row * k_;
      if (of_all_) {
        for (int64_t i = 0; i < k_; ++i) factors[i] = c.shares[c.best[i]];
        if (normalized_) multiply(factors, k_, 1.0f / sum(factors, k_));
      } else if (counts_) {
        const float* counts = reinterpret_cast<const float*>(run.inputs[kCounts]) + row * s_.experts;
        for (int64_t i = 0; i < k_; ++i) factors[i] = counts[c.best[i]];
        if (normalized_) multiply(factors, k_, inverse(sum(factors, k_)));
      } else {
        for (int64_t i = 0; i < k_; ++i) factors[i] = arithmetic::exp(scores[c.best[i]] - scores[c.best[0]]);
        multiply(factors, k_, inverse(sum(factors, k_)));
      }
      for (int64_t i = 0; i < k_; ++i) {
        const bool asked = factors[i] > (of_all_ ? 0.0f : 1e-8f);
        c.experts[row * k_ + i] = asked ? c.best[i] : -1;
        if (asked) ++c.asked[c.best[i]];
      }
    }
    int32_t* end = c.order;
    for (int32_t expert = 0; expert < s_.experts; ++expert) {
      if (c.asked[expert] > 0) *end++ = expert;
    }
    const int32_t* asked = c.asked;
    if (fewest_first_) {
      std::sort(c.order, end, [asked](int32_t a, int32_t b) { return asked[a] < asked[b]; });
    } else if (!of_all_) {
      std::sort(c.order, end, [asked](int32_t a, int32_t b) { return asked[a] > asked[b]; });
    }
    // The others ask nothing.
    for (int32_t expert = 0; expert < s_.experts; ++expert) {
      if (c.asked[expert] == 0) *end++ = expert;
    }
  }

  void activate(const float* x, float* out) const {
    const int64_t count = s_.inner;
    if (gated_) {
      for (int64_t i = 0; i < count; ++i) {
        const float gate = std::min(x[2 * i], limit_), linear = std::min(std::max(x[2 * i + 1], -limit_), limit_);
        const float argument = alpha_ * gate, power = arithmetic::exp(-std::fabs(argument));
        const float share = argument > 0 ? 1.0f / (1.0f + power) : power / (1.0f + power);
        out[i] = gate * share * (linear + beta_);
      }
    } else if (activation_ == "relu") {
      for (int64_t i = 0; i < count; ++i) out[i] = x[i] > 0 ? x[i] : 0.0f;
    } else if (activation_ == "gelu") {
      for (int64_t i = 0; i < count; ++i) {
        const float within = 0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        out[i] = 0.5f * x[i] * (1.0f + arithmetic::tanh(within));
      }
    } else if (activation_ == "silu") {
      for (int64_t i = 0; i < count; ++i) out[i] = x[i] * (1.0f / (1.0f + arithmetic::exp(-x[i])));
    } else {
      std::copy_n(x, count, out);
    }
  }

  ExpertSizes s_;
  ExpertLayer first_, second_;
  int64_t k_;
  bool normalized_, of_all_ = false, fewest_first_ = false, gated_ = false, counts_ = false;
  std::string activation_;
  float alpha_ = 1.0f, beta_ = 0.0f, limit_ = 0.0f;
};

std::unique_ptr<Kernel> make_mixture_of_experts(const Step& step, const CoreSet& cores) {
  return std::make_unique<MixtureOfExperts>(step, cores);
}

BITTRUE_OPERATOR(mixture_of_experts, make_mixture_of_experts)

}  // namespace
}  // namespace bittrue
