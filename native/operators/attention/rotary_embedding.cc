// rotary_embedding: pairs of numbers turned by the rule binary32_fused_vectors.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

enum RotaryInput : size_t { kRotated, kCos, kSin, kPositions, kPastLengths };

class RotaryEmbedding final : public Kernel {
 public:
  RotaryEmbedding(const Step& step, const CoreSet& cores) : taps_(cores.real_taps_fused()) {
    require(step.rule("rotation") == "binary32_fused_vectors", "no native rule for this slot");
    batch_ = step.integer("batch"), length_ = step.integer("length"), heads_ = step.integer("heads");
    size_ = step.integer("size"), turned_ = step.integer("turned");
    turned_heads_ = step.integer("turned_heads"), interleaved_ = step.integer("interleaved", 0, 1) != 0;
    by_heads_ = step.integer("by_heads", 0, 1) != 0, counts_ = step.integer("counts", 0, 1) != 0;
    const Operand &x = step.input(kRotated), &cos = step.input(kCos), &sin = step.input(kSin);
    for (const Operand* operand : {&x, &cos, &sin, &step.output()}) {
      require(operand->type == Type::f32 && operand->dense(), "no native kernel for these types");
    }
    require(batch_ > 0 && length_ > 0 && heads_ > 0 && turned_ > 0 && turned_ <= size_ && turned_ % 2 == 0 &&
                turned_heads_ > 0 && turned_heads_ <= heads_,
            "there is nothing to turn");
    require(x.elements == batch_ * length_ * heads_ * size_ && step.output().elements == x.elements &&
                cos.elements == sin.elements && cos.elements % (turned_ / 2) == 0,
            "the shapes do not fit");
    known_ = cos.elements / (turned_ / 2);
    positions_ = step.has_input(kPositions), lengths_ = step.has_input(kPastLengths);
    streams_ = step.list("streams");
    for (const int64_t stream : streams_) require(stream >= 0 && stream < kStreams, "positions have another form");
    if (!streams_.empty()) {
      const Operand& positions = step.input(kPositions);
      require(static_cast<int64_t>(streams_.size()) == turned_ / 2 && !counts_ && positions.type == Type::s64 &&
                  positions.dense() && positions.elements == kStreams * batch_ * length_,
              "positions have another form");
    } else if (positions_) {
      const Operand& positions = step.input(kPositions);
      require(positions.type == Type::s64 && positions.dense() &&
                  positions.elements == (counts_ ? positions.elements : batch_ * length_) && positions.elements > 0,
              "positions have another form");
    } else if (lengths_) {
      require(step.input(kPastLengths).type == Type::s32 && step.input(kPastLengths).elements == batch_,
              "lengths have another form");
    } else {
      require(known_ == batch_ * length_, "the shapes do not fit");
    }
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  void run(const Run& run) const override {
    const int64_t streams = streams_.empty() ? 1 : kStreams;
    for (int64_t place = 0; place < streams * batch_ * length_; ++place) {
      const int64_t position = position_of(run, place / length_, place % length_);
      if (position < 0 || position >= known_) throw Undefined();
    }
    const auto* x = reinterpret_cast<const float*>(run.inputs[kRotated]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const bool small = batch_ * length_ * heads_ * size_ < kSmall;
    run.pool.parallel(batch_ * length_, small ? 1 : run.pool.threads(), [&](int64_t task, int worker) {
      const int64_t b = task / length_, s = task % length_, pairs = turned_ / 2;
      const auto* cos = reinterpret_cast<const float*>(run.inputs[kCos]);
      const auto* sin = reinterpret_cast<const float*>(run.inputs[kSin]);
      auto* both = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      // Cosines, then sines, or one beside the other.
      const int64_t step = interleaved_ ? 2 : 1, sines = interleaved_ ? 1 : pairs;
      if (streams_.empty()) {
        const int64_t at = position_of(run, b, s) * pairs;
        for (int64_t i = 0; i < pairs; ++i) both[step * i] = cos[at + i], both[sines + step * i] = sin[at + i];
      } else {
        // Each pair has one of several positions.
        for (int64_t i = 0; i < pairs; ++i) {
          const int64_t own = position_of(run, streams_[i] * batch_ + b, s) * pairs + i;
          both[step * i] = cos[own], both[sines + step * i] = sin[own];
        }
      }
      for (int64_t n = 0; n < heads_; ++n) {
        const int64_t place = (by_heads_ ? (b * heads_ + n) * length_ + s : task * heads_ + n) * size_;
        const int64_t turned = n < turned_heads_ ? turned_ : 0;
        if (turned > 0 && interleaved_) turn_neighbours(x + place, both, both + turned_, out + place);
        if (turned > 0 && !interleaved_) turn_halves(x + place, both, both + turned_, out + place);
        if (turned == size_) continue;
        std::memcpy(out + place + turned, x + place + turned, static_cast<size_t>(size_ - turned) * 4);
      }
    });
  }

 private:
  static constexpr int64_t kSmall = 20000;  // numbers
  static constexpr int64_t kStreams = 3;    // of positions

  int64_t position_of(const Run& run, int64_t b, int64_t s) const {
    if (positions_) {
      const auto* given = reinterpret_cast<const int64_t*>(run.inputs[kPositions]);
      // A first position that is near the end of its type is none.
      return counts_ ? (given[0] >= known_ ? known_ : given[0] + s) : given[b * length_ + s];
    }
    if (!lengths_) return b * length_ + s;
    return counts_ ? s : int64_t{reinterpret_cast<const int32_t*>(run.inputs[kPastLengths])[b]} + 1 - length_ + s;
  }

  int64_t worker_bytes() const { return round_up(2 * turned_ * int64_t{sizeof(float)}, 64); }

  // Both halves at once: `factors` are the cosines and the sines, `twice` is memory for as many numbers. Second products
  // first, to which the core adds the first ones.
  void turn_halves(const float* x, const float* factors, float* twice, float* out) const {
    const int64_t pairs = turned_ / 2;
    prepare(x, x + pairs, factors, factors + pairs, pairs, twice, twice + pairs, out, out + pairs);
    const float* firsts = twice;
    taps_(&firsts, &factors, 1, turned_, out);
  }
  static void prepare(const float* one, const float* two, const float* c, const float* s, int64_t count,
                      float* __restrict first, float* __restrict again, float* __restrict minus,
                      float* __restrict plus) {
    for (int64_t i = 0; i < count; ++i) {
      const float x = one[i], y = two[i];
      first[i] = x, again[i] = x;
      minus[i] = -(y * s[i]), plus[i] = y * c[i];
    }
  }

  // The same of pairs side by side, where a cosine and a sine of `factors` are next to each other, too.
  void turn_neighbours(const float* x, const float* factors, float* twice, float* out) const {
    // Behind the last vector of 8, all pairs but the first one are not fused.
    const int64_t pairs = turned_ / 2, fused = std::min(pairs, pairs / 8 * 8 + 1);
    prepare_neighbours(x, factors, fused, twice, out);
    const float* firsts = twice;
    taps_(&firsts, &factors, 1, 2 * fused, out);
    for (int64_t i = 2 * fused; i < turned_; i += 2) {
      out[i] = x[i] * factors[i] - x[i + 1] * factors[i + 1];
      out[i + 1] = x[i] * factors[i + 1] + x[i + 1] * factors[i];
    }
  }
  static void prepare_neighbours(const float* x, const float* factors, int64_t pairs, float* __restrict first,
                                 float* __restrict second) {
    for (int64_t i = 0; i < 2 * pairs; i += 2) {
      const float one = x[i], two = x[i + 1];
      first[i] = one, first[i + 1] = one;
      second[i] = -(two * factors[i + 1]), second[i + 1] = two * factors[i];
    }
  }

  RealTaps taps_;
  int64_t batch_ = 0, length_ = 0, heads_ = 0, size_ = 0, turned_ = 0, turned_heads_ = 0, known_ = 0;
  std::vector<int64_t> streams_;  // of every pair; none: there is one
  bool interleaved_ = false, by_heads_ = false, counts_ = false, positions_ = false, lengths_ = false;
};

std::unique_ptr<Kernel> make_rotary_embedding(const Step& step, const CoreSet& cores) {
  return std::make_unique<RotaryEmbedding>(step, cores);
}

BITTRUE_OPERATOR(rotary_embedding, make_rotary_embedding)

}  // namespace
}  // namespace bittrue
