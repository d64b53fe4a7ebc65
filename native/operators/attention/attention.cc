// attention of real numbers: scores, softmax and sums of values, head by head, by the rules whole_rows,
// whole_rows_of_halves, binary32_blocks and binary32_blocks_by_inverse.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "arithmetic/elementary.h"
#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/layers/fused_product.h"
#include "operators/layers/single_rows.h"
#include "operators/reduction/softmax.h"

namespace bittrue {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
// Multiply-adds below which one thread does all of it.
constexpr int64_t kSmall = 50000;
constexpr int64_t kQueryRows = FusedProduct::kRows;
// Bytes of the cache whose size decides how many keys make a block.
constexpr int64_t kCache = int64_t{1} << 20;
enum AttentionInput : size_t {
  kQuery,
  kKey,
  kValue,
  kBias,
  kMask,
  kAdded,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kSink
};

// The largest of some numbers, none of which is NaN, without their signs.
float largest_size(const float* numbers, int64_t count) {
  float lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t l = 0; l < 8; ++l) {
      const float size = std::fabs(numbers[i + l]), lane = lanes[l];
      lanes[l] = size > lane ? size : lane;
    }
  }
  for (; i < count; ++i) lanes[0] = std::max(lanes[0], std::fabs(numbers[i]));
  return *std::max_element(lanes, lanes + 8);
}

bool has_zero(const float* numbers, int64_t count) {
  uint32_t zero = 0;
  for (int64_t i = 0; i < count; ++i) zero |= numbers[i] == 0.0f;
  return zero != 0;
}

// Where the numbers of a head lie: [batch][head][row], each row side by side. Those by heads in the file have their bias.
struct Heads {
  size_t input = kQuery;
  bool biased = false;
  int64_t offset = 0, batch = 0, head = 0, row = 0, bias = 0, size = 0;

  const float* at(const Run& run, int64_t b, int64_t n, int64_t r) const {
    return reinterpret_cast<const float*>(run.inputs[input]) + offset + b * batch + n * head + r * row;
  }
};

// An operand that is broadcast to [batch, heads, queries, keys].
struct Spread {
  int64_t batch = 0, head = 0, row = 0, key = 0;
};

Spread spread_of(const Operand& operand, int64_t batch, int64_t heads, int64_t queries, int64_t keys) {
  require(operand.rank() <= 4 && operand.dense(), "an operand has another form");
  const int64_t whole[4] = {batch, heads, queries, keys};
  int64_t steps[4] = {}, stride = 1;
  for (int i = 0; i < operand.rank(); ++i) {
    const int64_t size = operand.shape[operand.rank() - 1 - i];
    require(size == 1 || size == whole[3 - i], "an operand has another form");
    steps[3 - i] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return {steps[0], steps[1], steps[2], steps[3]};
}

class Attention final : public Kernel {
 public:
  Attention(const Step& step, const CoreSet& cores)
      : core_(cores.real_matmul()),
        softmax_(cores.softmax_rows()),
        narrow_(cores.narrow_to_halves()),
        widen_(cores.widen_halves()) {
    require(step.rule("real_product") == "binary32_fused_blocks", "no native rule for this slot");
    lanes_ = softmax_lanes(step);
    require(lanes_ != 0, "no native rule for this slot");
    const std::string& rule = step.rule("attention");
    half_ = rule == "whole_rows_of_halves";
    whole_ = half_ || rule == "whole_rows", inverse_ = rule == "binary32_blocks_by_inverse";
    require(whole_ || inverse_ || rule == "binary32_blocks", "no native rule for this slot");
    cap_ = static_cast<float>(step.real("cap")), sinks_ = step.has_input(kSink);
    smooth_ = step.integer("smooth", 0, 1) != 0;
    require(cap_ == 0.0f || (whole_ && !half_ && cap_ > 0.0f), "capped scores of blocks, or of halves");
    require(step.integer("cache_bits") == 0 && step.text("cache") != "sliding", "a cache of integers, or of a window");
    require(step.outputs.size() <= 3, "scores are asked for");
    batch_ = step.integer("batch"), queries_ = step.integer("queries"), fresh_ = step.integer("new");
    past_ = step.integer("past"), keys_ = step.integer("keys"), heads_ = step.integer("heads");
    key_heads_ = step.integer("key_heads"), size_ = step.integer("size"), value_size_ = step.integer("value_size");
    require(batch_ > 0 && queries_ > 0 && fresh_ > 0 && keys_ > 0 && heads_ > 0 && key_heads_ > 0 && size_ > 0 &&
                value_size_ > 0 && past_ >= 0 && heads_ % key_heads_ == 0,
            "there is nothing to do");
    lowest_ = static_cast<float>(step.real("lowest"));
    scale_ = static_cast<float>(step.real("scale")), mask_value_ = static_cast<float>(step.real("mask_value"));
    causal_ = step.integer("causal", 0, 1) != 0, last_sees_all_ = step.integer("last_sees_all", 0, 1) != 0;
    begins_with_mask_ = step.integer("begins_with_mask", 0, 1) != 0, strided_ = step.integer("strided", 0, 1) != 0;
    by_heads_ = step.integer("by_heads", 0, 1) != 0;
    window_ = step.integer("window"), begins_ = step.integer("first", 0, 1) != 0;
    const std::string& cache = step.text("cache");
    stacked_ = cache == "stacked", placed_ = cache == "placed";
    require(!(sinks_ || smooth_) || (whole_ && placed_), "sinks of blocks");
    require(!sinks_ || (step.input(kSink).type == Type::f32 && step.input(kSink).elements == heads_),
            "sinks have another form");
    place_heads(step);
    place_masks(step);
    check_cache(step);
  }

  std::string note() const override { return "products of heads in blocks of fused multiply-adds"; }
  bool packs(size_t) const override { return false; }
  int64_t scratch_bytes(int threads) const override { return cache_bytes() + threads * worker_bytes(); }

  void run(const Run& run) const override {
    const int32_t* lengths = placed_ ? reinterpret_cast<const int32_t*>(run.inputs[kLengths]) : nullptr;
    if (placed_) check_lengths(lengths);
    if (ends_) check_ends(reinterpret_cast<const int32_t*>(run.inputs[kMask]));
    float *keys = nullptr, *values = nullptr;
    find_cache(run, keys, values);
    const bool small = batch_ * heads_ * queries_ * keys_ * (size_ + value_size_) < kSmall;
    const int threads = small ? 1 : run.pool.threads();
    run.pool.parallel(batch_ * key_heads_, threads, [&](int64_t task, int) {
      const int64_t b = task / key_heads_, n = task % key_heads_, before = placed_ ? first_new(lengths[b]) : past_;
      if (!lies_ready(key_)) join(run, key_, kPastKey, 0, b, n, before, keys + task * keys_ * size_);
      if (lies_ready(value_)) return;
      join(run, value_, stacked_ ? kPastKey : kPastValue, stacked_ ? batch_ * key_heads_ * past_ * size_ : 0, b, n,
           before, values + task * keys_ * value_size_);
    });
    std::atomic<bool> defined{true};
    run.pool.parallel(batch_ * heads_, threads, [&](int64_t task, int worker) {
      const int64_t b = task / heads_, n = task % heads_, key_head = b * key_heads_ + n / (heads_ / key_heads_);
      Head head;
      head.b = b, head.n = n;
      head.keys = placed_ ? lengths[b] + 1 : keys_;
      head.before = placed_ ? first_new(lengths[b]) : past_;
      const int64_t kn = key_head % key_heads_;
      head.k = lies_ready(key_) ? key_.at(run, b, kn, 0) : keys + key_head * keys_ * size_;
      head.v = lies_ready(value_) ? value_.at(run, b, kn, 0) : values + key_head * keys_ * value_size_;
      head.scratch = run.scratch + cache_bytes() + worker * worker_bytes();
      head.worker = worker;
      const bool right = whole_                      ? whole_rows(run, head)
                         : inverse_ && queries_ == 1 ? one_query(run, head)
                                                     : in_blocks(run, head);
      if (!right) defined.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  struct Head {
    int64_t b = 0, n = 0, keys = 0, before = 0;
    const float *k = nullptr, *v = nullptr;
    uint8_t* scratch = nullptr;
    int worker = 0;
  };

  // -- what is made once
  void place_heads(const Step& step) {
    const bool packed = !step.has_input(kKey);
    const int64_t sizes[3] = {size_, size_, value_size_}, heads[3] = {heads_, key_heads_, key_heads_};
    int64_t columns = 0;
    for (int i = 0; i < 3; ++i) columns += heads[i] * sizes[i];
    Heads* const all[3] = {&query_, &key_, &value_};
    for (int64_t i = 0, offset = 0; i < 3; offset += heads[i] * sizes[i], ++i) {
      Heads& own = *all[i];
      own.input = packed ? size_t{kQuery} : static_cast<size_t>(i), own.size = sizes[i], own.bias = offset;
      const Operand& operand = step.input(own.input);
      require(operand.type == Type::f32 && operand.dense() && (operand.rank() == 3 || operand.rank() == 4),
              "an operand has another form");
      const int64_t rows = i == 0 ? queries_ : fresh_;
      own.biased = step.has_input(kBias) && operand.rank() == 3;
      if (operand.rank() == 4) {
        own.row = sizes[i], own.head = rows * sizes[i], own.batch = heads[i] * own.head;
      } else {
        own.row = packed ? columns : heads[i] * sizes[i], own.head = sizes[i], own.batch = rows * own.row;
        own.offset = packed ? offset : 0;
      }
      require(operand.elements == batch_ * rows * (packed ? columns : heads[i] * sizes[i]), "the shapes do not fit");
    }
    require(!step.has_input(kBias) || (step.input(kBias).type == Type::f32 && step.input(kBias).elements == columns),
            "the bias has another form");
    const Operand& out = step.output();
    require(out.type == Type::f32 && out.dense() && out.elements == batch_ * queries_ * heads_ * value_size_,
            "the shapes do not fit");
  }

  void place_masks(const Step& step) {
    if (step.has_input(kAdded)) {
      require(step.input(kAdded).type == Type::f32 && !begins_with_mask_, "additions have another form");
      const Operand& added = step.input(kAdded);
      // Additions to a cache end with the longest sequence.
      added_ = true, columns_ = placed_ && added.rank() > 0 ? added.shape.back() : keys_;
      addition_ = spread_of(added, batch_, heads_, queries_, columns_);
    }
    if (!step.has_input(kMask)) return;
    const Operand& mask = step.input(kMask);
    mask_type_ = mask.type, masked_ = true;
    require(!placed_ && (mask.type == Type::f32 || mask.type == Type::boolean || mask.type == Type::s32),
            "the mask has another form");
    if (mask.type != Type::s32) {
      mask_ = spread_of(mask, batch_, heads_, queries_, keys_);
      return;
    }
    if (mask.rank() == 1) {
      require(mask.elements >= batch_, "the mask is too short");
      ends_ = true, starts_ = mask.elements == 2 * batch_;
      return;
    }
    require(mask.dense() && mask.rank() <= 3, "the mask has another form");
    const bool by_query = mask.rank() == 3;
    require(mask.elements == batch_ * keys_ * (by_query ? queries_ : 1), "the mask has another form");
    mask_ = {mask.elements / batch_, 0, by_query ? keys_ : 0, 1};
  }

  void check_cache(const Step& step) {
    has_past_ = step.has_input(kPastKey);
    const int64_t heads = batch_ * key_heads_ * past_;
    if (has_past_) {
      require(step.input(kPastKey).elements == heads * (stacked_ ? 2 * size_ : size_) && step.input(kPastKey).dense(),
              "the cache has another form");
      require(stacked_ || (step.input(kPastValue).elements == heads * value_size_ && step.input(kPastValue).dense()),
              "the cache has another form");
    }
    require(!stacked_ || size_ == value_size_ || !has_past_, "the cache has another form");
    gives_cache_ = step.outputs.size() > 1;
    if (placed_) {
      require(step.has_input(kLengths) && step.input(kLengths).type == Type::s32 &&
                  step.input(kLengths).elements == batch_ && gives_cache_,
              "lengths have another form");
      require(!begins_with_mask_, "the mask has another form");
    } else {
      require(keys_ == past_ + fresh_ && !step.has_input(kLengths), "lengths have another form");
      require(has_past_ || past_ == 0, "the cache has another form");
    }
    require(!gives_cache_ || step.outputs.size() == (stacked_ ? 2u : 3u), "the cache has another form");
    if (gives_cache_) {
      const int64_t all = batch_ * key_heads_ * keys_;
      require(step.output(1).elements == all * (stacked_ ? 2 * size_ : size_) && step.output(1).dense(),
              "the cache has another form");
      require(stacked_ || (step.output(2).elements == all * value_size_ && step.output(2).dense()),
              "the cache has another form");
    }
  }

  // -- memory
  int64_t cache_bytes() const {
    return gives_cache_ ? 0 : round_up(batch_ * key_heads_ * keys_ * (size_ + value_size_) * 4, 64);
  }
  // A single query of the cache takes all keys at once.
  bool all_keys() const { return whole_ || (inverse_ && queries_ == 1); }
  int64_t block_keys() const { return all_keys() ? keys_ : std::min(keys_, std::max<int64_t>(1, cache_keys())); }
  int64_t cache_keys() const { return kCache / (16 * (size_ + value_size_)); }
  int64_t block_rows() const {
    return whole_ ? std::min(kQueryRows, queries_)
                  : std::min({std::max<int64_t>(1, cache_keys()), size_ + value_size_, queries_});
  }
  FusedProduct scores(int64_t keys) const { return {core_, size_, keys, scale_, false}; }
  FusedProduct sums(int64_t keys) const { return {core_, keys, value_size_, 1.0f, false}; }

  // Queries, scores, weights, sums, what rows begin with; running maxima and sums; packed keys and values; of products.
  int64_t row_floats() const { return size_ + 3 * block_keys() + value_size_ + 2; }
  int64_t rows_bytes() const { return round_up(block_rows() * row_floats() * 4, 64); }
  int64_t packed_keys() const { return round_up(scores(block_keys()).matrix_numbers() * 4, 64); }
  int64_t packed_values() const { return round_up(sums(block_keys()).matrix_numbers() * 4, 64); }
  int64_t worker_bytes() const {
    return rows_bytes() + packed_keys() + packed_values() +
           std::max(scores(block_keys()).worker_bytes(), sums(block_keys()).worker_bytes());
  }

  void find_cache(const Run& run, float*& keys, float*& values) const {
    const int64_t all = batch_ * key_heads_ * keys_ * size_;
    keys = reinterpret_cast<float*>(gives_cache_ ? run.outputs[1] : run.scratch);
    values = gives_cache_ && !stacked_ ? reinterpret_cast<float*>(run.outputs[2]) : keys + all;
  }

  // -- the cache
  // Whether an operand's rows of a head are all keys or values, side by side.
  bool lies_ready(const Heads& from) const {
    return !from.biased && !has_past_ && !gives_cache_ && fresh_ == keys_ && from.row == from.size;
  }
  int64_t first_new(int64_t length) const { return begins_ || !has_past_ ? 0 : length + 1 - queries_; }

  void check_lengths(const int32_t* lengths) const {
    for (int64_t b = 0; b < batch_; ++b) {
      const int64_t count = int64_t{lengths[b]} + 1, before = first_new(lengths[b]);
      if (added_ && addition_.key != 0 && count > columns_) throw Undefined();
      if (count < 1 || count > keys_ || before < 0 || before > past_ || before + fresh_ > keys_) throw Undefined();
    }
  }

  void check_ends(const int32_t* ends) const {
    for (int64_t i = 0; i < batch_; ++i) {
      if (ends[i] < 0) throw Undefined();
    }
  }

  void join(const Run& run, const Heads& from, size_t past, int64_t offset, int64_t b, int64_t n, int64_t before,
            float* to) const {
    const int64_t size = from.size;
    if (before > 0) {
      const auto* old = reinterpret_cast<const float*>(run.inputs[past]) + offset + (b * key_heads_ + n) * past_ * size;
      std::memcpy(to, old, static_cast<size_t>(before * size) * 4);
    }
    for (int64_t r = 0; r < fresh_; ++r) take(run, from, b, n, r, to + (before + r) * size);
    std::fill(to + (before + fresh_) * size, to + keys_ * size, 0.0f);
  }

  void take(const Run& run, const Heads& from, int64_t b, int64_t n, int64_t row, float* to) const {
    const float* numbers = from.at(run, b, n, row);
    if (!from.biased) {
      std::memcpy(to, numbers, static_cast<size_t>(from.size) * 4);
      return;
    }
    const float* bias = reinterpret_cast<const float*>(run.inputs[kBias]) + from.bias + n * from.size;
    for (int64_t i = 0; i < from.size; ++i) to[i] = numbers[i] + bias[i];
  }

  float* result(const Run& run, int64_t b, int64_t n, int64_t row) const {
    const int64_t place = by_heads_ ? (b * heads_ + n) * queries_ + row : (b * queries_ + row) * heads_ + n;
    return reinterpret_cast<float*>(run.outputs[0]) + place * value_size_;
  }

  // -- what hides keys
  // What is added to a row's scores of the keys [from, from + count).
  void hiding(const Run& run, const Head& head, int64_t row, int64_t from, int64_t count, float* to) const {
    if (!masked_) {
      std::fill_n(to, count, 0.0f);
    } else if (ends_) {
      const auto* marks = reinterpret_cast<const int32_t*>(run.inputs[kMask]);
      const int64_t end = marks[head.b], start = starts_ ? marks[batch_ + head.b] : 0;
      for (int64_t t = 0; t < count; ++t) to[t] = from + t >= end || from + t < start ? mask_value_ : 0.0f;
    } else {
      const int64_t at = head.b * mask_.batch + head.n * mask_.head + row * mask_.row + from * mask_.key;
      const int64_t step = mask_.key;
      if (mask_type_ == Type::f32) {
        const float* marks = reinterpret_cast<const float*>(run.inputs[kMask]) + at;
        for (int64_t t = 0; t < count; ++t) to[t] = marks[t * step];
      } else if (mask_type_ == Type::boolean) {
        const uint8_t* marks = run.inputs[kMask] + at;
        for (int64_t t = 0; t < count; ++t) to[t] = marks[t * step] != 0 ? 0.0f : mask_value_;
      } else {
        const int32_t* marks = reinterpret_cast<const int32_t*>(run.inputs[kMask]) + at;
        for (int64_t t = 0; t < count; ++t) to[t] = marks[t * step] > 0 ? 0.0f : mask_value_;
      }
    }
    const int64_t later = causal_ && !(last_sees_all_ && row == queries_ - 1) ? row + past_ + 1 : from + count;
    for (int64_t t = std::max<int64_t>(later - from, 0); t < count; ++t) to[t] = lowest_;
  }

  // Numbers as they are stored on the way; false where one is not finite.
  bool store(float* numbers, int64_t count) const {
    if (!half_) return true;
    constexpr int64_t kPart = 512;
    uint16_t halves[kPart];
    for (int64_t i = 0; i < count; i += kPart) {
      const int64_t part = std::min(kPart, count - i);
      narrow_(numbers + i, halves, part);
      widen_(halves, numbers + i, part);
    }
    return all_finite(numbers, count);
  }

  // What the sums of a row's scores begin with; true where the query sees no key.
  bool begin_row(const Run& run, const Head& head, int64_t row, float* to) const {
    hiding(run, head, row, 0, head.keys, to);
    bool blind = true;
    for (int64_t t = 0; t < head.keys; ++t) blind &= to[t] <= lowest_;
    return blind;
  }

  // `begin` is memory for as many numbers.
  void hide(const Run& run, const Head& head, int64_t row, int64_t from, int64_t count, float* scores,
            float* begin) const {
    if (added_) {
      const auto* added = reinterpret_cast<const float*>(run.inputs[kAdded]) + head.b * addition_.batch +
                          head.n * addition_.head + row * addition_.row + from * addition_.key;
      for (int64_t t = 0; t < count; ++t) scores[t] += added[t * addition_.key];
    }
    if ((begins_with_mask_ && cap_ == 0.0f) || placed_ || (!masked_ && !causal_)) return;
    hiding(run, head, row, from, count, begin);
    for (int64_t t = 0; t < count; ++t) scores[t] += begin[t];
  }

  // The keys [first, end) that a query of a sequence in its place sees.
  void seen(const Head& head, int64_t row, int64_t& first, int64_t& end) const {
    end = causal_ ? head.before + row + 1 : head.keys;
    if (whole_) end = std::min(end, head.keys);
    first = window_ >= 0 ? std::max<int64_t>(end - window_, 0) : 0;
  }

  // -- products
  // Scores of rows [first, first + count) of `all` with keys: those of a single row are in lanes where nothing scales them.
  bool score(const FusedProduct& product, const float* q, int64_t count, int64_t all, const float* k,
             const float* packed, int64_t keys, const Addend& begin, float* to, uint8_t* scratch) const {
    if (all > 1 || scale_ != 1.0f) return product.multiply_all(q, count, packed, begin, to, keys, scratch);
    sums_of_lanes_of_eight(k, q, size_, keys, to);
    for (int64_t t = 0; t < keys; ++t) to[t] = to[t] + (begin.from == nullptr ? 0.0f : begin.from[t]);
    return all_finite(to, keys);
  }

  // Weights times values, added to `to` where it has sums already. Rows count from `first` on among `all`.
  bool add_values(const FusedProduct& product, const float* weights, int64_t first, int64_t count, int64_t all,
                  const float* v, const float* packed, int64_t keys, bool more, float* to, uint8_t* scratch) const {
    const bool column = value_size_ == 1 && !strided_;
    if (all > 1 && !column) {
      const Addend addend{more ? to : nullptr, value_size_, 1};
      return product.multiply_all(weights, count, packed, addend, to, value_size_, scratch);
    }
    if (!more) std::fill_n(to, count * value_size_, 0.0f);
    if (all == 1) {
      add_fours(weights, v, value_size_, keys, value_size_, to);
    } else {
      for (int64_t r = 0; r < count; ++r) {
        to[r] = sum_lanes_of_eight(weights + r * keys, v, 1, keys, first + r, all) + to[r];
      }
    }
    return all_finite(to, count * value_size_);
  }

  struct Rows {
    float *q, *scores, *weights, *begin, *total, *largest, *sum, *keys, *values;
    uint8_t* products;
  };

  Rows rows_of(uint8_t* scratch) const {
    const int64_t rows = block_rows(), keys = block_keys();
    Rows own{};
    own.q = reinterpret_cast<float*>(scratch);
    own.scores = own.q + rows * size_, own.weights = own.scores + rows * keys, own.begin = own.weights + rows * keys;
    own.total = own.begin + rows * keys, own.largest = own.total + rows * value_size_, own.sum = own.largest + rows;
    own.keys = reinterpret_cast<float*>(scratch + rows_bytes());
    own.values = reinterpret_cast<float*>(scratch + rows_bytes() + packed_keys());
    own.products = scratch + rows_bytes() + packed_keys() + packed_values();
    return own;
  }

  // Whether keys behind the last one that a row sees need not be looked at: their weights are 0, and leave sums as they are.
  bool hides_later(const Run& run, const Head& head) const {
    const bool column = value_size_ == 1 && !strided_;
    if (!causal_ || last_sees_all_ || half_ || queries_ <= kQueryRows || column) return false;
    if (!all_finite(head.v, head.keys * value_size_)) return false;
    if (placed_) return true;
    if (masked_ || added_ || query_.biased || !all_finite(head.k, head.keys * size_)) return false;
    // Others have a score, to which the lowest number is added. Far from that, no score and none of its sums comes near it.
    constexpr float kFar = 1e30f;
    float query = 0.0f;
    for (int64_t r = 0; r < queries_; ++r) {
      query = std::max(query, largest_size(query_.at(run, head.b, head.n, r), size_));
    }
    const float product = query * largest_size(head.k, head.keys * size_) * static_cast<float>(size_);
    return product * std::max(std::fabs(scale_), 1.0f) < kFar;
  }

  // Scores that no limit is above; false where one is not finite.
  bool limit(float* scores, int64_t count) const {
    if (cap_ == 0.0f) return true;
    for (int64_t t = 0; t < count; ++t) scores[t] = arithmetic::tanh(scores[t] / cap_) * cap_;
    return store(scores, count);
  }

  // The softmax of scores, in which a sink may take part that has no value; false where it may be no number.
  bool weigh(const Run& run, const Head& head, const float* scores, float* weights, int64_t count) const {
    if (!sinks_ && !smooth_) return softmax_.row(scores, weights, count, lanes_);
    const float sink = sinks_ ? reinterpret_cast<const float*>(run.inputs[kSink])[head.n] : 0.0f;
    const float largest = std::max(softmax_.largest(scores, count), sink);
    const float sum = softmax_.powers(scores, weights, count, largest, lanes_) + arithmetic::exp(sink - largest);
    const float by = 1.0f / sum;
    for (int64_t t = 0; t < count; ++t) weights[t] *= by;
    return all_finite(&sink, 1) && all_finite(&by, 1) && all_finite(weights, count);
  }

  bool whole_rows(const Run& run, const Head& head) const {
    const Rows own = rows_of(head.scratch);
    const FusedProduct scores = this->scores(head.keys), sums = this->sums(head.keys);
    if (queries_ > 1 || scale_ != 1.0f) scores.pack_all(head.k, true, own.keys);
    if (queries_ > 1) sums.pack_all(head.v, false, own.values);
    const bool begins = begins_with_mask_ && (masked_ || causal_), later = hides_later(run, head);
    for (int64_t row = 0; row < queries_; row += kQueryRows) {
      run.check(head.worker);
      const int64_t count = std::min(kQueryRows, queries_ - row);
      // What the last row sees, by whole panels for scores.
      const int64_t reach = later ? std::min(head.keys, head.before + row + count) : head.keys;
      const int64_t shown = std::min(head.keys, round_up(reach, scores.panel()));
      bool blind[kQueryRows] = {};
      for (int64_t r = 0; r < count; ++r) {
        take(run, query_, head.b, head.n, row + r, own.q + r * size_);
        if (begins) blind[r] = begin_row(run, head, row + r, own.begin + r * head.keys);
      }
      // Masks are added to capped scores.
      const Addend begin{begins && cap_ == 0.0f ? own.begin : nullptr, head.keys, 1};
      if (!score(scores.within(size_, shown), own.q, count, queries_, head.k, own.keys, head.keys, begin, own.scores,
                 own.products) ||
          !store(own.scores, count * head.keys)) {
        return false;
      }
      for (int64_t r = 0; r < count; ++r) {
        float *line = own.scores + r * head.keys, *weights = own.weights + r * head.keys;
        int64_t first = 0, end = later ? std::min(head.keys, head.before + row + r + 1) : head.keys;
        if (!limit(line, end)) return false;
        hide(run, head, row + r, 0, end, line, own.begin);
        if (placed_) seen(head, row + r, first, end);
        std::fill(weights, weights + first, 0.0f);
        std::fill(weights + end, weights + head.keys, 0.0f);
        if (blind[r]) {
          std::fill(weights, weights + head.keys, 0.0f);
        } else if (end > first && !weigh(run, head, line + first, weights + first, end - first)) {
          return false;
        }
        if (!store(weights, head.keys)) return false;
      }
      const auto sum = [&](const FusedProduct& product) {
        return add_values(product, own.weights, row, count, queries_, head.v, own.values, head.keys, false, own.total,
                          own.products);
      };
      // Adding products with 0 may change the sign of a 0, and of nothing else.
      if (!sum(sums.within(reach, value_size_)) ||
          (reach < head.keys && has_zero(own.total, count * value_size_) && !sum(sums)) ||
          !store(own.total, count * value_size_)) {
        return false;
      }
      for (int64_t r = 0; r < count; ++r) {
        std::memcpy(result(run, head.b, head.n, row + r), own.total + r * value_size_,
                    static_cast<size_t>(value_size_) * 4);
      }
    }
    return true;
  }

  bool in_blocks(const Run& run, const Head& head) const {
    const Rows own = rows_of(head.scratch);
    const int64_t rows = block_rows(), keys = std::min(block_keys(), head.keys);
    const bool later = placed_ && window_ < 0 && hides_later(run, head);
    for (int64_t row = 0; row < queries_; row += rows) {
      const int64_t count = std::min(rows, queries_ - row);
      int64_t reach = head.keys;
      for (int64_t r = 0; r < count; ++r) take(run, query_, head.b, head.n, row + r, own.q + r * size_);
      if (placed_ && causal_) reach = std::min(reach, head.before + row + count);
      std::fill_n(own.largest, count, kLowest);
      std::fill_n(own.sum, count, 0.0f);
      for (int64_t at = 0; at < reach; at += keys) {
        run.check(head.worker);
        const int64_t own_keys = std::min(keys, head.keys - at);
        if (!add_block(run, head, own, row, count, at, own_keys, later ? reach - at : own_keys)) return false;
      }
      for (int64_t r = 0; r < count; ++r) {
        float* out = result(run, head.b, head.n, row + r);
        const float *total = own.total + r * value_size_, sum = own.sum[r];
        const float by = sum > 0.0f ? 1.0f / sum : 0.0f;
        for (int64_t i = 0; i < value_size_; ++i) out[i] = inverse_ ? total[i] * by : total[i] / sum;
      }
    }
    return true;
  }

  // Rows [row, row + count) meet keys [at, at + keys); those from at + `reach` on have weights of 0.
  bool add_block(const Run& run, const Head& head, const Rows& own, int64_t row, int64_t count, int64_t at,
                 int64_t keys, int64_t reach) const {
    const float *k = head.k + at * size_, *v = head.v + at * value_size_;
    const FusedProduct scores = this->scores(keys), sums = this->sums(keys);
    const int64_t shown = std::min(keys, round_up(reach, scores.panel()));
    // All keys in one block are packed for the first rows.
    const bool packs = row == 0 || keys < head.keys;
    if (packs && queries_ > 1) {
      scores.pack_all(k, true, own.keys);
      sums.pack_all(v, false, own.values);
    } else if (packs && scale_ != 1.0f) {
      scores.pack_all(k, true, own.keys);
    }
    const FusedProduct first_scores = scores.within(size_, shown);
    if (!score(first_scores, own.q, count, count, k, own.keys, keys, {}, own.scores, own.products)) return false;
    for (int64_t r = 0; r < count; ++r) {
      float *line = own.scores + r * keys, *total = own.total + r * value_size_;
      std::fill(line + shown, line + keys, 0.0f);
      hide(run, head, row + r, at, shown, line, own.begin);
      if (placed_) {
        int64_t first = 0, end = 0;
        seen(head, row + r, first, end);
        for (int64_t t = 0; t < shown; ++t) {
          if (at + t < first || at + t >= end) line[t] = kLowest;
        }
      }
      const float found = softmax_.largest(line, shown), before = own.largest[r];
      if (inverse_ && found == kLowest) {
        std::fill_n(line, keys, 0.0f);
        continue;
      }
      const float largest = std::max(before, found), sum = softmax_.powers(line, line, shown, largest, lanes_);
      own.largest[r] = largest;
      if (at == 0) {
        own.sum[r] = sum;
        continue;
      }
      const float factor = arithmetic::exp(before - largest);
      own.sum[r] = factor * own.sum[r] + sum;
      for (int64_t i = 0; i < value_size_; ++i) total[i] *= factor;
    }
    const auto sum = [&](const FusedProduct& product) {
      return add_values(product, own.scores, 0, count, count, v, own.values, keys, at > 0, own.total, own.products);
    };
    // Adding products with 0 may change the sign of a 0, and of nothing else.
    if (at > 0 || shown == keys) return sum(sums);
    return sum(sums.within(shown, value_size_)) && (!has_zero(own.total, count * value_size_) || sum(sums));
  }

  static constexpr int kTogether = 4;  // keys, so that their sums need not wait for each other, and values

  using Four = float __attribute__((vector_size(16)));
  static Four four(const float* from) {
    Four x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }

  template <int kKeys>
  void scores_of(const float* q, const float* k, float* scores) const {
    Four lanes[kKeys][2] = {};
    const int64_t whole = size_ / 8 * 8;
    for (int64_t i = 0; i < whole; i += 8) {
      const Four query[2] = {four(q + i), four(q + i + 4)};
#pragma GCC unroll 4
      for (int j = 0; j < kKeys; ++j) {
        lanes[j][0] += query[0] * four(k + j * size_ + i);
        lanes[j][1] += query[1] * four(k + j * size_ + i + 4);
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < kKeys; ++j) {
      const Four low = lanes[j][0], high = lanes[j][1];
      float sum = ((low[0] + low[1]) + (low[2] + low[3])) + ((high[0] + high[1]) + (high[2] + high[3]));
      for (int64_t i = whole; i < size_; ++i) sum += q[i] * k[j * size_ + i];
      scores[j] = sum * scale_;
    }
  }

  // total[i] += the sum over `kValues` values of weights[t] times number i of value t, in order.
  template <int kValues>
  void add_up(const float* weights, const float* v, float* __restrict total) const {
    for (int64_t i = 0; i < value_size_; ++i) {
      float sum = total[i];
      for (int t = 0; t < kValues; ++t) sum += weights[t] * v[t * value_size_ + i];
      total[i] = sum;
    }
  }

  // Products in 8 lanes, what is left one by one; values are added up in order.
  bool one_query(const Run& run, const Head& head) const {
    const Rows own = rows_of(head.scratch);
    float* q = own.q;
    take(run, query_, head.b, head.n, 0, q);
    float largest = kLowest;
    int64_t first = 0, end = 0;
    seen(head, 0, first, end);
    std::fill_n(own.total, value_size_, 0.0f);
    float* scores = own.scores;
    int64_t key = 0;
    for (; key + kTogether <= head.keys; key += kTogether) scores_of<kTogether>(q, head.k + key * size_, scores + key);
    for (; key < head.keys; ++key) scores_of<1>(q, head.k + key * size_, scores + key);
    if (!all_finite(scores, head.keys)) return false;
    hide(run, head, 0, 0, head.keys, scores, own.begin);
    for (int64_t t = 0; t < head.keys; ++t) {
      if (t < first || t >= end) scores[t] = kLowest;
      largest = std::max(largest, scores[t]);
    }
    float* out = result(run, head.b, head.n, 0);
    if (largest == kLowest) {
      std::fill_n(out, value_size_, 0.0f);
      return true;
    }
    const float sum = softmax_.powers(scores, scores, head.keys, largest, lanes_), by = sum > 0.0f ? 1.0f / sum : 0.0f;
    int64_t t = 0;
    for (; t + kTogether <= head.keys; t += kTogether) {
      add_up<kTogether>(scores + t, head.v + t * value_size_, own.total);
    }
    for (; t < head.keys; ++t) add_up<1>(scores + t, head.v + t * value_size_, own.total);
    for (int64_t i = 0; i < value_size_; ++i) out[i] = own.total[i] * by;
    return all_finite(out, value_size_);
  }

  const RealMatmul& core_;
  const SoftmaxRows& softmax_;
  NarrowToHalves narrow_;
  WidenHalves widen_;
  bool whole_ = true, half_ = false, inverse_ = false, causal_ = false, last_sees_all_ = false,
       begins_with_mask_ = false;
  bool strided_ = false, by_heads_ = false, begins_ = false, stacked_ = false, placed_ = false, has_past_ = false;
  bool gives_cache_ = false, added_ = false, masked_ = false, ends_ = false, starts_ = false;
  int64_t batch_ = 0, queries_ = 0, fresh_ = 0, past_ = 0, keys_ = 0, heads_ = 0, key_heads_ = 0, size_ = 0;
  int64_t value_size_ = 0, window_ = -1, columns_ = 0;
  bool sinks_ = false, smooth_ = false;
  float scale_ = 1.0f, mask_value_ = 0.0f, lowest_ = kLowest, cap_ = 0.0f;
  int lanes_ = 16;
  Heads query_, key_, value_;
  Spread addition_, mask_;
  Type mask_type_ = Type::f32;
};

std::unique_ptr<Kernel> make_attention(const Step& step, const CoreSet& cores) {
  return std::make_unique<Attention>(step, cores);
}

BITTRUE_OPERATOR(attention, make_attention)

}  // namespace
}  // namespace bittrue
