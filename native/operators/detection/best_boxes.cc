// non_max_suppression of several images and classes: per image and class, boxes by falling score without those that overlap a chosen one too much; a room of rows
// for each, and which rows are in use.
#include "operators/detection/best_boxes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/share.h"

namespace bittrue {
namespace {

struct BoxCorners {
  float low_y, low_x, high_y, high_x, area;
};

// The smaller number, or NaN where one is none.
float least(float a, float b) { return a < b || std::isnan(a) ? a : b; }
// The greater one, likewise.
float greatest(float a, float b) { return a > b || std::isnan(a) ? a : b; }

BoxCorners corners_of(const float* box, bool centred) {
  BoxCorners c{};
  if (centred) {
    const float half_y = box[3] / 2, half_x = box[2] / 2;
    c = {box[1] - half_y, box[0] - half_x, box[1] + half_y, box[0] + half_x, 0};
  } else {
    c = {least(box[0], box[2]), least(box[1], box[3]), greatest(box[0], box[2]), greatest(box[1], box[3]), 0};
  }
  c.area = (c.high_y - c.low_y) * (c.high_x - c.low_x);
  return c;
}

// Chosen boxes, each side on its own: a stretch of them is looked at in vectors.
struct ChosenBoxes {
  static constexpr int64_t kTogether = 16;
  static constexpr int64_t kSides = 5;

  // Room for `most`, where nothing is near anything yet.
  ChosenBoxes(float* memory, int64_t most) : stride(round_up(most, kTogether)), sides(memory) {
    std::fill(sides, sides + kSides * stride, -std::numeric_limits<float>::infinity());
  }

  void add(const BoxCorners& c) {
    const float values[kSides] = {c.low_y, c.low_x, c.high_y, c.high_x, c.area};
    for (int64_t side = 0; side < kSides; ++side) sides[side * stride + count] = values[side];
    ++count;
  }

  // Whether one of them overlaps a box too much.
  bool overlap(const BoxCorners& box, float limit) const {
    const float *low_y = sides, *low_x = low_y + stride, *high_y = low_x + stride, *high_x = high_y + stride;
    const float* area = high_x + stride;
    for (int64_t first = 0; first < count; first += kTogether) {
      int near = 0;
      for (int64_t i = first; i < first + kTogether; ++i) {
        near |= (high_y[i] > box.low_y) & (high_x[i] > box.low_x) & (low_y[i] < box.high_y) & (low_x[i] < box.high_x);
      }
      for (int64_t i = first; near != 0 && i < std::min(count, first + kTogether); ++i) {
        if (overlap({low_y[i], low_x[i], high_y[i], high_x[i], area[i]}, box, limit)) return true;
      }
    }
    return false;
  }

  // Whether intersection over union exceeds the limit; boxes without area overlap nothing.
  static bool overlap(const BoxCorners& a, const BoxCorners& b, float limit) {
    const float low_y = std::max(a.low_y, b.low_y), low_x = std::max(a.low_x, b.low_x);
    const float high_y = std::min(a.high_y, b.high_y), high_x = std::min(a.high_x, b.high_x);
    if (!(high_y > low_y && high_x > low_x)) return false;
    const float shared = (high_y - low_y) * (high_x - low_x), both = a.area + b.area - shared;
    return shared > 0 && a.area > 0 && b.area > 0 && both > 0 && shared / both > limit;
  }

  int64_t stride, count = 0;
  float* sides;
};

// A box and its score as one number: higher ones come first, equal scores by position, what is no number last.
uint64_t next_box(float score, int64_t box) {
  const float number = score + 0.0f;  // zeros are equal
  uint32_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  const uint32_t order = number != number ? 0 : bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{order} << 32 | (0xFFFFFFFFu - static_cast<uint32_t>(box));
}
int64_t box_of(uint64_t next) { return 0xFFFFFFFF - static_cast<int64_t>(next & 0xFFFFFFFFu); }

class BestBoxes final : public Kernel {
 public:
  explicit BestBoxes(const Step& step) {
    const Operand &boxes = step.input(0), &scores = step.input(1), &rows = step.output(0), &kept = step.output(1);
    require(boxes.rank() == 3 && scores.rank() == 3 && boxes.shape[2] == 4 && boxes.shape[0] == scores.shape[0] &&
                boxes.shape[1] == scores.shape[2] && boxes.type == Type::f32 && scores.type == Type::f32,
            "the shapes do not fit");
    images_ = scores.shape[0], classes_ = scores.shape[1], boxes_ = scores.shape[2];
    room_ = step.integer("room", 1, std::max<int64_t>(1, boxes_));
    centred_ = step.integer("centred", 0, 1) != 0;
    for (size_t i = 3; i < 5; ++i) {
      require(!step.has_input(i) || (step.input(i).type == Type::f32 && step.input(i).elements == 1),
              "limits must be real scalars");
    }
    limited_ = step.has_input(3), least_ = step.has_input(4);
    require(boxes_ < std::numeric_limits<int32_t>::max() && images_ * classes_ > 0, "too many boxes, or none");
    require(boxes.dense() && scores.dense() && rows.dense() && kept.dense() && rows.type == Type::s64 &&
                kept.type == Type::boolean && kept.elements == images_ * classes_ * room_ &&
                rows.elements == 3 * kept.elements,
            "the outputs do not fit");
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  void run(const Run& run) const override {
    const float limit = limited_ ? *reinterpret_cast<const float*>(run.inputs[3]) : 0.0f;
    if (!(limit >= 0 && limit <= 1)) throw Undefined();
    // Where a heap leaves NaN is the reference's to tell; no limit lets them pass.
    if (!least_ && any_nan(reinterpret_cast<const float*>(run.inputs[1]))) throw Undefined();
    const auto* boxes = reinterpret_cast<const float*>(run.inputs[0]);
    const int threads = run.pool.threads_for(images_ * classes_ * boxes_);
    run.pool.parallel(images_ * classes_, threads, [&](int64_t task, int worker) {
      choose(run, limit, task, worker, boxes + task / classes_ * boxes_ * 4, run.scratch + worker * worker_bytes());
    });
  }

 private:
  static constexpr int64_t kChosenBytes = ChosenBoxes::kSides * int64_t{sizeof(float)};

  int64_t worker_bytes() const {
    return round_up(boxes_ * int64_t{sizeof(uint64_t)} + kChosenBytes * round_up(room_, ChosenBoxes::kTogether), 64);
  }

  bool any_nan(const float* scores) const {
    bool found = false;
    for (int64_t i = 0; i < images_ * classes_ * boxes_; ++i) found |= scores[i] != scores[i];
    return found;
  }

  // Of one image and class.
  void choose(const Run& run, float limit, int64_t task, int worker, const float* boxes, uint8_t* scratch) const {
    const auto* scores = reinterpret_cast<const float*>(run.inputs[1]) + task * boxes_;
    auto* heap = reinterpret_cast<uint64_t*>(scratch);
    ChosenBoxes chosen(reinterpret_cast<float*>(heap + boxes_), room_);
    int64_t length = 0;
    // Without a branch: which scores are high enough is hard to predict.
    const float least = least_ ? *reinterpret_cast<const float*>(run.inputs[4]) : 0.0f;
    for (int64_t i = 0; i < boxes_; ++i) {
      heap[length] = next_box(scores[i], i);
      length += !least_ || scores[i] > least ? 1 : 0;
    }
    std::make_heap(heap, heap + length);
    auto* rows = reinterpret_cast<int64_t*>(run.outputs[0]) + 3 * task * room_;
    uint8_t* kept = run.outputs[1] + task * room_;
    int64_t found = 0;
    for (; length > 0 && found < room_; --length) {
      run.check(worker);
      std::pop_heap(heap, heap + length);
      const int64_t box = box_of(heap[length - 1]);
      const BoxCorners next = corners_of(boxes + 4 * box, centred_);
      if (chosen.overlap(next, limit)) continue;
      chosen.add(next);
      rows[3 * found] = task / classes_, rows[3 * found + 1] = task % classes_, rows[3 * found + 2] = box;
      kept[found++] = 1;
    }
    std::fill(rows + 3 * found, rows + 3 * room_, 0);
    std::fill(kept + found, kept + room_, uint8_t{0});
  }

  int64_t images_ = 0, classes_ = 0, boxes_ = 0, room_ = 0;
  bool centred_ = false, limited_ = false, least_ = false;
};

}  // namespace

std::unique_ptr<Kernel> make_best_boxes(const Step& step) { return std::make_unique<BestBoxes>(step); }

}  // namespace bittrue
