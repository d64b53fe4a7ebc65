// causal_conv and linear_attention: sequences worked on place by place, with a state that goes on behind the last one.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "arithmetic/elementary.h"
#include "core/kernel.h"
#include "core/rounding.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/core/sizes.h"
#include "operators/layers/fused_product.h"
#include "operators/layers/single_rows.h"

namespace bittrue {
namespace {

constexpr int64_t kMostSize = int64_t{1} << 40;

void require_real(const Operand& operand, std::initializer_list<int64_t> sizes) {
  require(operand.type == Type::f32 && operand.dense() && operand.elements == elements_of(sizes),
          "no native kernel for these types");
}

const float* reals(const Run& run, size_t input) { return reinterpret_cast<const float*>(run.inputs[input]); }

class CausalConvolution final : public Kernel {
 public:
  explicit CausalConvolution(const Step& step)
      : last_(step.integer("channels_last", 0, 1) != 0),
        gated_(step.integer("gated", 0, 1) != 0),
        biased_(step.has_input(2)),
        given_(step.has_input(3)),
        dilation_(step.integer("dilation", 1, kMostSize)),
        batch_(step.integer("batch", 0, kMostSize)),
        channels_(step.integer("channels", 0, kMostSize)),
        length_(step.integer("length", 0, kMostSize)),
        taps_(step.integer("taps", 1, 1 << 16)) {
    require(dilation_ <= int64_t{1} << 31, "taps lie very far apart");
    places_ = (taps_ - 1) * dilation_;
    require_real(step.input(1), {channels_, taps_});
    if (biased_) require_real(step.input(2), {channels_});
    for (const auto& [operand, count] :
         {std::pair{&step.input(0), length_}, {&step.output(), length_}, {&step.output(1), places_}}) {
      require_real(*operand, {batch_, channels_, count});
    }
    if (given_) require_real(step.input(3), {batch_, channels_, places_});
  }
  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  std::string note() const override { return "taps in order"; }
  bool tells_nan() const override { return true; }

  void run(const Run& run) const override {
    const int64_t rows = batch_ * channels_;
    std::atomic<bool> finite{true};
    run.pool.parallel(rows, rows * length_ * taps_ < 20000 ? 1 : run.pool.threads(), [&](int64_t row, int worker) {
      auto* seen = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      float* sums = seen + places_ + length_;
      const int64_t n = row / channels_, c = row % channels_;
      take(given_ ? reals(run, 3) : nullptr, n, c, places_, seen);
      take(reals(run, 0), n, c, length_, seen + places_);
      std::fill_n(sums, length_, biased_ ? 0.0f + reals(run, 2)[c] : 0.0f);
      for (int64_t tap = 0; tap < taps_; ++tap) {
        const float weight = reals(run, 1)[c * taps_ + tap];
        const float* x = seen + tap * dilation_;
        for (int64_t i = 0; i < length_; ++i) sums[i] += weight * x[i];
      }
      if (gated_) {
        for (int64_t i = 0; i < length_; ++i) sums[i] = sums[i] / (1.0f + arithmetic::exp(-sums[i]));
      }
      if (!all_finite(sums, length_)) finite.store(false, std::memory_order_relaxed);
      put(sums, n, c, length_, run.outputs[0]);
      put(seen + length_, n, c, places_, run.outputs[1]);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  int64_t worker_bytes() const { return round_up((places_ + 2 * length_) * 4, 64); }

  // `count` places of channel c; zeros from nowhere.
  void take(const float* from, int64_t n, int64_t c, int64_t count, float* to) const {
    if (from == nullptr) {
      std::fill_n(to, count, 0.0f);
    } else if (last_) {
      for (int64_t i = 0; i < count; ++i) to[i] = from[(n * count + i) * channels_ + c];
    } else {
      std::copy_n(from + (n * channels_ + c) * count, count, to);
    }
  }
  void put(const float* from, int64_t n, int64_t c, int64_t count, uint8_t* output) const {
    auto* to = reinterpret_cast<float*>(output);
    if (last_) {
      for (int64_t i = 0; i < count; ++i) to[(n * count + i) * channels_ + c] = from[i];
    } else {
      std::copy_n(from, count, to + (n * channels_ + c) * count);
    }
  }

  bool last_, gated_, biased_, given_;
  int64_t dilation_, batch_, channels_, length_, taps_, places_ = 0;
};

// Heads of values with a state [size, value_size] each: sums in order, or fused products with the state before it is written.
class LinearAttention final : public Kernel {
 public:
  LinearAttention(const Step& step, const CoreSet& cores)
      : core_(cores.real_matmul()),
        taps_(cores.real_taps_fused()),
        add_outer_(cores.add_outer()),
        fused_(step.rule("state_step") == "binary32_fused_from_old_state"),
        batch_(step.integer("batch", 0, kMostSize)),
        length_(step.integer("length", 0, kMostSize)),
        heads_(step.integer("heads", 1, 1 << 20)),
        key_heads_(step.integer("key_heads", 1, 1 << 20)),
        value_heads_(step.integer("value_heads", 1, 1 << 20)),
        size_(step.integer("size", 1, 1 << 16)),
        value_size_(step.integer("value_size", 1, 1 << 16)),
        scale_(static_cast<float>(step.real("scale"))),
        given_(step.has_input(kState)),
        decays_(step.integer("decays", 0, 1) != 0),
        rated_(step.integer("rated", 0, 1) != 0) {
    require(fused_ || step.rule("state_step") == "binary32_in_turn", "no native rule for this slot");
    require(!fused_ || (size_ % kLanes == 0 && size_ <= kMostFused && value_size_ % kLanes == 0), "states are large");
    // These are matrices that rows are multiplied by.
    large_ = !fused_ && size_ * value_size_ >= 4096;
    const auto product = step.rules.find("real_product");
    require(product == step.rules.end() ? !large_ : product->second == "binary32_fused_blocks",
            "no native rule for this slot");
    require(batch_ <= 1 << 20 && length_ <= 1 << 20, "the operands are very large");
    readers_ = heads_ / value_heads_;
    require(readers_ > 0 ? heads_ % value_heads_ == 0 : value_heads_ % heads_ == 0, "heads do not fit together");
    require(!fused_ || readers_ < FusedProduct::kRows, "many heads share a state");
    const int64_t places = batch_ * length_, states = batch_ * value_heads_ * size_ * value_size_;
    require_real(step.input(kQuery), {places, heads_, size_});
    require_real(step.input(kKey), {places, key_heads_, size_});
    require_real(step.input(kValue), {places, value_heads_, value_size_});
    require_real(step.output(0), {places, std::max(heads_, value_heads_), value_size_});
    require_real(step.output(1), {states});
    if (given_) require_real(step.input(kState), {states});
    if (decays_) {
      decay_size_ = step.input(kDecay).elements == places * value_heads_ ? 1 : size_;
      require_real(step.input(kDecay), {places, value_heads_, decay_size_});
    }
    if (rated_) {
      rates_ = step.input(kRate).elements == places ? 1 : value_heads_;
      require_real(step.input(kRate), {places, rates_});
    }
  }
  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  std::string note() const override { return "states place by place"; }
  bool tells_nan() const override { return true; }

  void run(const Run& run) const override {
    std::atomic<bool> finite{true};
    const int64_t work = batch_ * value_heads_ * length_ * size_ * value_size_;
    run.pool.parallel(batch_ * value_heads_, work < 20000 ? 1 : run.pool.threads(), [&](int64_t task, int worker) {
      auto* room = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      if (!head(run, task / value_heads_, task % value_heads_, room, worker)) {
        finite.store(false, std::memory_order_relaxed);
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int64_t kLanes = 16, kMostFused = 256;
  static constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kState = 3, kDecay = 4, kRate = 5;

  // What is read or a number as often as a value has columns, what is written; one row more of keys and queries, and of sums.
  int64_t room_floats() const { return 2 * value_size_ + (fused_ ? rows() * (size_ + value_size_) : 0); }
  int64_t rows() const { return 1 + std::max<int64_t>(1, readers_); }
  FusedProduct product() const { return {core_, size_, value_size_, 1.0f, size_}; }
  int64_t packed_bytes() const { return fused_ ? round_up(product().matrix_numbers() * 4, 64) : 0; }
  int64_t worker_bytes() const {
    return packed_bytes() + round_up(room_floats() * 4, 64) + (fused_ ? product().worker_bytes() : 0);
  }

  // A row times the state.
  void times(const float* row, const float* state, float* to) const {
    std::fill_n(to, value_size_, 0.0f);
    if (large_) return add_fours(row, state, value_size_, size_, value_size_, to);
    for (int64_t k = 0; k < size_; ++k) {
      for (int64_t v = 0; v < value_size_; ++v) to[v] += row[k] * state[k * value_size_ + v];
    }
  }

  // Queries lie side by side, and so do their results.
  struct Place {
    int64_t at = 0;
    const float *key = nullptr, *value = nullptr, *queries = nullptr, *decay = nullptr;
    float rate = 0.0f;
    float* out = nullptr;
  };

  float factor(const Place& place, int64_t k) const { return arithmetic::exp(place.decay[decay_size_ == 1 ? 0 : k]); }

  bool in_turn(const Place& place, float* state, float* room) const {
    float *read = room, *written = room + value_size_;
    for (int64_t k = 0; decays_ && k < size_; ++k) {
      const float by = factor(place, k);
      for (int64_t v = 0; v < value_size_; ++v) state[k * value_size_ + v] *= by;
    }
    std::copy_n(place.value, value_size_, written);
    if (rated_) {
      times(place.key, state, read);
      for (int64_t v = 0; v < value_size_; ++v) written[v] = place.rate * (written[v] - read[v]);
    }
    for (int64_t k = 0; k < size_; ++k) {
      for (int64_t v = 0; v < value_size_; ++v) state[k * value_size_ + v] += place.key[k] * written[v];
    }
    for (int64_t reader = 0; reader + 1 < rows(); ++reader) {
      times(place.queries + reader * size_, state, read);
      for (int64_t v = 0; v < value_size_; ++v) place.out[reader * value_size_ + v] = read[v] * scale_;
    }
    return all_finite(place.out, (rows() - 1) * value_size_);
  }

  // `state` lies in the product's panels.
  bool from_old_state(const Place& place, float* state, float* room) const {
    float *written = room, *same = room + value_size_, *sums = room + 2 * value_size_;
    float* factors = sums + rows() * value_size_;
    float decays[kMostFused];
    for (int64_t k = 0; decays_ && k < size_; ++k) decays[k] = decay_size_ == 1 && k > 0 ? decays[0] : factor(place, k);
    const int64_t first = rated_ ? 0 : 1;  // only rates ask what the key reads
    for (int64_t row = first; row < rows(); ++row) {
      const float* from = row == 0 ? place.key : place.queries + (row - 1) * size_;
      for (int64_t k = 0; k < size_; ++k) factors[row * size_ + k] = decays_ ? decays[k] * from[k] : from[k];
    }
    const FusedProduct product = this->product();
    bool finite = product.multiply_all(factors + first * size_, rows() - first, state, {}, sums + first * value_size_,
                                       value_size_, reinterpret_cast<uint8_t*>(room) + round_up(room_floats() * 4, 64));
    std::copy_n(place.value, value_size_, written);
    for (int64_t v = 0; rated_ && v < value_size_; ++v) written[v] = place.rate * (written[v] - sums[v]);
    for (int64_t reader = 0; reader + 1 < rows(); ++reader) {
      float *sum = sums + (reader + 1) * value_size_, *out = place.out + reader * value_size_;
      // One of the core's taps, whose weights are the same number everywhere.
      const float *numbers = written, *weights = same;
      std::fill_n(same, value_size_, dot(place.queries + reader * size_, place.key));
      taps_(&numbers, &weights, 1, value_size_, sum);
      for (int64_t v = 0; v < value_size_; ++v) out[v] = scale_ * sum[v];
    }
    for (int64_t p = 0; p < product.panels(); ++p) {
      const int64_t column = p * product.panel();
      add_outer_(state + column * size_, size_, product.width(p), decays_ ? decays : nullptr, place.key,
                 written + column);
    }
    finite &= all_finite(place.out, (rows() - 1) * value_size_);
    return finite;
  }

  // Fused products in lanes, which are folded by halves.
  float dot(const float* query, const float* key) const {
    const float *queries[kMostFused / kLanes], *keys[kMostFused / kLanes];
    for (int64_t i = 0; i < size_ / kLanes; ++i) queries[i] = query + i * kLanes, keys[i] = key + i * kLanes;
    float lanes[kLanes] = {};
    taps_(queries, keys, size_ / kLanes, kLanes, lanes);
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
  }

  void unpack(const float* packed, float* state) const {
    const FusedProduct product = this->product();
    for (int64_t p = 0; p < product.panels(); ++p) {
      const int64_t column = p * product.panel(), width = product.width(p);
      for (int64_t k = 0; k < size_; ++k) {
        std::copy_n(packed + column * size_ + k * width, width, state + k * value_size_ + column);
      }
    }
  }

  bool head(const Run& run, int64_t b, int64_t n, float* room, int worker) const {
    const int64_t numbers = size_ * value_size_, wide = std::max(heads_, value_heads_);
    float* state = reinterpret_cast<float*>(run.outputs[1]) + (b * value_heads_ + n) * numbers;
    if (given_) {
      std::copy_n(reals(run, kState) + (b * value_heads_ + n) * numbers, numbers, state);
    } else {
      std::fill_n(state, numbers, 0.0f);
    }
    // In the panels of a product for all places.
    float* packed = room;
    if (fused_) product().pack_all(state, false, packed), room += packed_bytes() / 4;
    bool finite = true;
    for (int64_t t = 0; t < length_; ++t) {
      if (t % 64 == 0) run.check(worker);
      Place place;
      place.at = b * length_ + t;
      place.key = reals(run, kKey) + (place.at * key_heads_ + n * key_heads_ / value_heads_) * size_;
      place.value = reals(run, kValue) + (place.at * value_heads_ + n) * value_size_;
      if (decays_) place.decay = reals(run, kDecay) + (place.at * value_heads_ + n) * decay_size_;
      if (rated_) place.rate = reals(run, kRate)[place.at * rates_ + (rates_ > 1 ? n : 0)];
      const int64_t first = readers_ > 0 ? n * readers_ : n * heads_ / value_heads_;
      place.queries = reals(run, kQuery) + (place.at * heads_ + first) * size_;
      place.out =
          reinterpret_cast<float*>(run.outputs[0]) + (place.at * wide + (readers_ > 0 ? first : n)) * value_size_;
      finite &= fused_ ? from_old_state(place, packed, room) : in_turn(place, state, room);
    }
    if (fused_) unpack(packed, state);
    return finite && all_finite(state, numbers);
  }

  const RealMatmul& core_;
  RealTaps taps_;
  AddOuter add_outer_;
  bool fused_;
  int64_t batch_, length_, heads_, key_heads_, value_heads_, size_, value_size_;
  float scale_;
  bool given_, decays_, rated_, large_ = false;
  int64_t readers_ = 1, decay_size_ = 1, rates_ = 1;
};

std::unique_ptr<Kernel> make_causal_conv(const Step& step, const CoreSet&) {
  require_rounded_twice(step);
  return std::make_unique<CausalConvolution>(step);
}

std::unique_ptr<Kernel> make_linear_attention(const Step& step, const CoreSet& cores) {
  return std::make_unique<LinearAttention>(step, cores);
}

BITTRUE_OPERATOR(causal_conv, make_causal_conv)
BITTRUE_OPERATOR(linear_attention, make_linear_attention)

}  // namespace
}  // namespace bittrue
