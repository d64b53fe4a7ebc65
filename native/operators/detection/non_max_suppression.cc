// non_max_suppression: boxes by descending score, without those that overlap a better one too much.
#include <algorithm>
#include <cmath>

#include "arithmetic/boxes.h"
#include "arithmetic/elementary.h"
#include "arithmetic/heap.h"
#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/detection/best_boxes.h"

namespace bittrue {
namespace {

using arithmetic::Box;

struct Candidate {
  float score;
  int32_t box, seen;
};

class NonMaxSuppression final : public Kernel {
 public:
  NonMaxSuppression(int64_t boxes, int64_t room, bool soft) : boxes_(boxes), room_(room), soft_(soft) {}

  int64_t scratch_bytes(int) const override { return boxes_ * int64_t{sizeof(Box) + sizeof(Candidate)}; }

  void run(const Run& run) const override {
    const auto* corners = reinterpret_cast<const float*>(run.inputs[0]);
    const auto* scores = reinterpret_cast<const float*>(run.inputs[1]);
    const float overlap_limit = scalar(run, 3), score_limit = scalar(run, 4), sigma = soft_ ? scalar(run, 5) : 0;
    if (sigma < 0) throw Undefined();
    const auto factor = static_cast<float>(sigma > 0 ? -0.5 / static_cast<double>(sigma) : 0);
    auto* boxes = reinterpret_cast<Box*>(run.scratch);
    auto* heap = reinterpret_cast<Candidate*>(boxes + boxes_);
    auto* chosen = reinterpret_cast<int32_t*>(run.outputs[0]);
    auto* values = soft_ ? reinterpret_cast<float*>(run.outputs[1]) : nullptr;
    const auto worse = [](const Candidate& a, const Candidate& b) { return a.score < b.score; };
    // Most boxes lie apart. Their overlap is 0, unless numbers are so large that areas are infinite; it drops none of them
    // and leaves scores as they are, since exp(0) = 1.
    bool skips = !(0 >= overlap_limit) && std::isfinite(factor);
    int64_t length = 0;
    for (int64_t i = 0; i < boxes_; ++i) {
      run.check();
      for (int k = 0; k < 4; ++k) skips = skips && std::fabs(corners[4 * i + k]) < 1e18f;
      boxes[i] = arithmetic::sorted_corners(corners + 4 * i);
      if (scores[i] > score_limit) arithmetic::push(heap, length++, {scores[i], static_cast<int32_t>(i), 0}, worse);
    }
    const int64_t most = std::min(length, room_);
    int32_t found = 0;
    while (length > 0 && found < most) {
      run.check();
      Candidate next = arithmetic::pop(heap, length--, worse);
      const float before = next.score;
      bool dropped = false;
      // Latest first; those that were met in an earlier turn are passed over.
      for (int32_t j = found; j-- > next.seen && !dropped;) {
        if (skips && arithmetic::apart(boxes[next.box], boxes[chosen[j]])) continue;
        const float overlap = arithmetic::intersection_over_union(boxes[next.box], boxes[chosen[j]]);
        dropped = overlap >= overlap_limit;
        if (dropped || !(sigma > 0)) continue;
        const float power = factor * overlap * overlap;
        next.score = next.score * arithmetic::exp(power);
        if (next.score <= score_limit) break;
      }
      if (dropped) continue;
      next.seen = found;
      if (next.score == before) {
        chosen[found] = next.box;
        if (values != nullptr) values[found] = next.score;
        ++found;
      }
      if (next.score > score_limit) arithmetic::push(heap, length++, next, worse);
    }
    std::fill(chosen + found, chosen + room_, 0);
    if (values != nullptr) std::fill(values + found, values + room_, 0.0f);
    *reinterpret_cast<int32_t*>(run.outputs[soft_ ? 2 : 1]) = found;
  }

 private:
  static float scalar(const Run& run, size_t input) { return *reinterpret_cast<const float*>(run.inputs[input]); }

  int64_t boxes_, room_;
  bool soft_;
};

std::unique_ptr<Kernel> make_non_max_suppression(const Step& step, const CoreSet&) {
  if (step.integers.count("centred") != 0) return make_best_boxes(step);
  const bool soft = step.inputs.size() == 6;
  require((soft && step.outputs.size() == 3) || (step.inputs.size() == 5 && step.outputs.size() == 2), "arity");
  const Operand &boxes = step.input(0), &scores = step.input(1);
  require(boxes.rank() == 2 && boxes.shape[1] == 4 && scores.elements == boxes.shape[0], "the shapes do not fit");
  require(scores.elements < (int64_t{1} << 31), "too many boxes");
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    require(step.input(i).dense() && (i == 2 || step.input(i).type == Type::f32), "inputs must be binary32");
    require(i < 2 || step.input(i).elements == 1, "limits must be scalars");
  }
  const int64_t room = step.integer("room", 0, (int64_t{1} << 31) - 1);
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const Operand& out = step.output(i);
    require(out.dense() && out.type == (soft && i == 1 ? Type::f32 : Type::s32), "the outputs do not fit");
    require(out.elements == (i + 1 == step.outputs.size() ? 1 : room), "the outputs do not fit");
  }
  return std::make_unique<NonMaxSuppression>(scores.elements, room, soft);
}

BITTRUE_OPERATOR(non_max_suppression, make_non_max_suppression)

}  // namespace
}  // namespace bittrue
