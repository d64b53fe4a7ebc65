// causal_conv and linear_attention: sequences worked on place by place, with a state that goes on behind the last one.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "arithmetic/elementary.h"
#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/core/sizes.h"

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

// Heads of values with a state [size, value_size] each, sums in order.
class LinearAttention final : public Kernel {
 public:
  explicit LinearAttention(const Step& step)
      : batch_(step.integer("batch", 0, kMostSize)),
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
    // Larger states are products of matrices by another rule.
    require(size_ * value_size_ < 4096, "states are large");
    require(batch_ <= 1 << 20 && length_ <= 1 << 20, "the operands are very large");
    readers_ = heads_ / value_heads_;
    require(readers_ > 0 ? heads_ % value_heads_ == 0 : value_heads_ % heads_ == 0, "heads do not fit together");
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
  int64_t scratch_bytes(int threads) const override { return threads * round_up(2 * value_size_ * 4, 64); }
  std::string note() const override { return "states place by place"; }
  bool tells_nan() const override { return true; }

  void run(const Run& run) const override {
    std::atomic<bool> finite{true};
    const int64_t work = batch_ * value_heads_ * length_ * size_ * value_size_;
    run.pool.parallel(batch_ * value_heads_, work < 20000 ? 1 : run.pool.threads(), [&](int64_t task, int worker) {
      auto* room = reinterpret_cast<float*>(run.scratch + worker * round_up(2 * value_size_ * 4, 64));
      if (!head(run, task / value_heads_, task % value_heads_, room, worker)) {
        finite.store(false, std::memory_order_relaxed);
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kState = 3, kDecay = 4, kRate = 5;

  // A row times the state.
  void times(const float* row, const float* state, float* to) const {
    std::fill_n(to, value_size_, 0.0f);
    for (int64_t k = 0; k < size_; ++k) {
      for (int64_t v = 0; v < value_size_; ++v) to[v] += row[k] * state[k * value_size_ + v];
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
    bool finite = true;
    float *read = room, *written = room + value_size_;
    for (int64_t t = 0; t < length_; ++t) {
      if (t % 64 == 0) run.check(worker);
      const int64_t place = b * length_ + t;
      for (int64_t k = 0; decays_ && k < size_; ++k) {
        const float* decay = reals(run, kDecay) + (place * value_heads_ + n) * decay_size_;
        const float factor = arithmetic::exp(decay[decay_size_ == 1 ? 0 : k]);
        for (int64_t v = 0; v < value_size_; ++v) state[k * value_size_ + v] *= factor;
      }
      const float* key = reals(run, kKey) + (place * key_heads_ + n * key_heads_ / value_heads_) * size_;
      const float* value = reals(run, kValue) + (place * value_heads_ + n) * value_size_;
      std::copy_n(value, value_size_, written);
      if (rated_) {
        times(key, state, read);
        const float rate = reals(run, kRate)[place * rates_ + (rates_ > 1 ? n : 0)];
        for (int64_t v = 0; v < value_size_; ++v) written[v] = rate * (written[v] - read[v]);
      }
      for (int64_t k = 0; k < size_; ++k) {
        for (int64_t v = 0; v < value_size_; ++v) state[k * value_size_ + v] += key[k] * written[v];
      }
      const int64_t first = readers_ > 0 ? n * readers_ : n * heads_ / value_heads_;
      for (int64_t reader = first; reader < first + std::max<int64_t>(1, readers_); ++reader) {
        times(reals(run, kQuery) + (place * heads_ + reader) * size_, state, read);
        float* out =
            reinterpret_cast<float*>(run.outputs[0]) + (place * wide + (readers_ > 0 ? reader : n)) * value_size_;
        for (int64_t v = 0; v < value_size_; ++v) out[v] = read[v] * scale_;
        finite &= all_finite(out, value_size_);
      }
    }
    return finite && all_finite(state, numbers);
  }

  int64_t batch_, length_, heads_, key_heads_, value_heads_, size_, value_size_;
  float scale_;
  bool given_, decays_, rated_;
  int64_t readers_ = 1, decay_size_ = 1, rates_ = 1;
};

std::unique_ptr<Kernel> make_causal_conv(const Step& step, const CoreSet&) {
  return std::make_unique<CausalConvolution>(step);
}

std::unique_ptr<Kernel> make_linear_attention(const Step& step, const CoreSet&) {
  return std::make_unique<LinearAttention>(step);
}

BITTRUE_OPERATOR(causal_conv, make_causal_conv)
BITTRUE_OPERATOR(linear_attention, make_linear_attention)

}  // namespace
}  // namespace bittrue
