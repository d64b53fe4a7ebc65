// detection_postprocess: boxes decoded from anchors, then the best of them without those that overlap too much.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "arithmetic/boxes.h"
#include "arithmetic/heap.h"
#include "core/kernel.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

using arithmetic::Box;

struct ScoredBox {
  float score;
  int32_t box;
};

struct Detection {
  float score;
  int32_t box, column;
};

// Elements as binary32: stored so, or unsigned bytes that stand for (q - zero point) * scale.
class DetectionReals {
 public:
  DetectionReals(const Step& step, size_t input, const std::string& role) : bytes_(step.input(input).type == Type::u8) {
    require(bytes_ || step.input(input).type == Type::f32, "inputs must be u8 or binary32");
    require(step.input(input).dense(), "inputs must be dense");
    if (!bytes_) return;
    const auto scale = static_cast<float>(step.real((role + "_scale").c_str()));
    const int64_t zero_point = step.integer((role + "_zero_point").c_str(), 0, 255);
    for (int q = 0; q < 256; ++q) {
      table_[q] = static_cast<float>(q - zero_point) * scale;
    }
  }
  float at(const uint8_t* stored, int64_t i) const {
    return bytes_ ? table_[stored[i]] : reinterpret_cast<const float*>(stored)[i];
  }

 private:
  bool bytes_;
  float table_[256];
};

class DetectionPostprocess final : public Kernel {
 public:
  explicit DetectionPostprocess(const Step& step)
      : encodings_(step, 0, "encoding"),
        scores_(step, 1, "score"),
        anchors_(step, 2, "anchor"),
        regular_(step.integer("regular", 0, 1) != 0),
        most_(step.integer("max_detections", 1, kLargest)),
        per_box_(step.integer("classes_per_detection", 1, kLargest)),
        per_class_(step.integer("detections_per_class", regular_ ? 1 : -kLargest, kLargest)),
        classes_(step.integer("classes", 1, kLargest)),
        score_threshold_(static_cast<float>(step.real("score_threshold"))),
        overlap_threshold_(static_cast<float>(step.real("overlap_threshold"))),
        scale_y_(step.real("y_scale")),
        scale_x_(step.real("x_scale")),
        scale_h_(step.real("h_scale")),
        scale_w_(step.real("w_scale")) {
    const Operand &code = step.input(0), &score = step.input(1);
    require(code.rank() == 3 && code.shape[0] == 1 && code.shape[2] >= 4, "encodings must be [1, boxes, 4 or more]");
    boxes_ = code.shape[1];
    code_ = code.shape[2];
    require(boxes_ <= kLargest && score.rank() == 3 && score.shape[0] == 1 && score.shape[1] == boxes_,
            "the scores do not fit");
    columns_ = score.shape[2];
    require(columns_ == classes_ || columns_ == classes_ + 1, "the scores do not fit");
    require(step.input(2).elements >= 4 * boxes_, "the anchors do not fit");
    require(step.outputs.size() == 4, "four outputs are needed");
    require(per_box_ <= (int64_t{1} << 40) / most_, "impossible room");
    room_ = most_ * per_box_;
    const int64_t sizes[] = {4 * room_, room_, room_, 1};
    for (size_t i = 0; i < 4; ++i) {
      const Operand& out = step.output(i);
      require(out.type == Type::f32 && out.dense() && out.elements == sizes[i], "the outputs do not fit");
    }
    per_class_ = std::min(per_class_, most_);
  }

  int64_t scratch_bytes(int) const override {
    return boxes_ * int64_t{sizeof(Box) + sizeof(ScoredBox) + sizeof(int32_t) + 1} +
           (most_ + most_) * int64_t{sizeof(Detection)} + columns_ * int64_t{sizeof(int32_t)};
  }

  void run(const Run& run) const override {
    Memory memory(*this, run.scratch);
    decode(run, memory.boxes);
    for (int64_t i = 0; i < 4; ++i) {
      std::memset(run.outputs[i], 0, static_cast<size_t>(i == 0 ? 4 * room_ : i == 3 ? 1 : room_) * sizeof(float));
    }
    const int64_t count = regular_ ? regular(run, memory) : fast(run, memory);
    *reinterpret_cast<float*>(run.outputs[3]) = static_cast<float>(count);
  }

  std::string note() const override { return regular_ ? "per class" : "per box"; }

 private:
  static constexpr int64_t kLargest = (int64_t{1} << 31) - 1;

  struct Memory {
    Memory(const DetectionPostprocess& k, uint8_t* scratch) {
      boxes = reinterpret_cast<Box*>(scratch);
      candidates = reinterpret_cast<ScoredBox*>(boxes + k.boxes_);
      detections = reinterpret_cast<Detection*>(candidates + k.boxes_);
      chosen = reinterpret_cast<int32_t*>(detections + 2 * k.most_);
      order = chosen + k.boxes_;
      gone = reinterpret_cast<uint8_t*>(order + k.columns_);
    }
    Box* boxes;
    ScoredBox* candidates;
    Detection* detections;
    int32_t *chosen, *order;
    uint8_t* gone;
  };

  // Binary64 up to centre and half size, then binary32.
  void decode(const Run& run, Box* boxes) const {
    for (int64_t i = 0; i < boxes_; ++i) {
      run.check();
      double c[4], a[4];
      for (int64_t k = 0; k < 4; ++k) {
        c[k] = encodings_.at(run.inputs[0], i * code_ + k);
        a[k] = anchors_.at(run.inputs[2], 4 * i + k);
      }
      const auto y = static_cast<float>(c[0] / scale_y_ * a[2] + a[0]);
      const auto x = static_cast<float>(c[1] / scale_x_ * a[3] + a[1]);
      const auto half_y = static_cast<float>(0.5 * std::exp(c[2] / scale_h_) * a[2]);
      const auto half_x = static_cast<float>(0.5 * std::exp(c[3] / scale_w_) * a[3]);
      boxes[i] = {y - half_y, x - half_x, y + half_y, x + half_x};
      if (boxes[i].low_y > boxes[i].high_y || boxes[i].low_x > boxes[i].high_x) throw Undefined();
    }
  }

  float score(const Run& run, int64_t box, int64_t column) const {
    return scores_.at(run.inputs[1], box * columns_ + (columns_ - classes_) + column);
  }

  // Greedy choice among the first `count` candidates, whose scores reach the threshold; the number of chosen ones.
  int64_t suppress(const Run& run, Memory& m, int64_t count, int64_t most) const {
    std::sort(m.candidates, m.candidates + count, [](const ScoredBox& a, const ScoredBox& b) {
      return a.score > b.score || (a.score == b.score && a.box < b.box);
    });
    std::memset(m.gone, 0, static_cast<size_t>(count));
    int64_t found = 0;
    // The overlap of boxes with a gap between them is 0 or NaN.
    const bool skips = overlap_threshold_ >= 0;
    for (int64_t i = 0; i < count && found < most; ++i) {
      if (m.gone[i]) continue;
      run.check();
      m.chosen[found++] = static_cast<int32_t>(i);
      const Box best = m.boxes[m.candidates[i].box];
      for (int64_t j = i + 1; j < count; ++j) {
        const Box& box = m.boxes[m.candidates[j].box];
        if (m.gone[j] || (skips && apart(best, box))) continue;
        m.gone[j] = intersection_over_union(best, box) > overlap_threshold_;
      }
    }
    return found;
  }

  void write(const Run& run, const Memory& m, int64_t place, int32_t box, int64_t column, float score) const {
    std::memcpy(run.outputs[0] + place * int64_t{sizeof(Box)}, m.boxes + box, sizeof(Box));
    reinterpret_cast<float*>(run.outputs[1])[place] = static_cast<float>(column);
    reinterpret_cast<float*>(run.outputs[2])[place] = score;
  }

  // One suppression with each box's best score; every chosen box is listed with its best classes.
  int64_t fast(const Run& run, Memory& m) const {
    const int64_t listed = std::min(per_box_, classes_);
    int64_t count = 0;
    for (int64_t i = 0; i < boxes_; ++i) {
      run.check();
      float best = score(run, i, 0);
      bool nan = best != best;
      for (int64_t k = 1; k < classes_; ++k) {
        const float s = score(run, i, k);
        nan = nan || s != s;
        if (s > best || (best != best && s == s)) best = s;
      }
      // What a heap makes of NaNs is left to the reference.
      if (nan && listed > 1) throw Undefined();
      if (best >= score_threshold_) m.candidates[count++] = {best, static_cast<int32_t>(i)};
    }
    const int64_t found = suppress(run, m, count, most_);
    for (int64_t i = 0; i < found; ++i) {
      const int32_t box = m.candidates[m.chosen[i]].box;
      if (listed == 1) {
        int64_t column = 0;
        while (score(run, box, column) != m.candidates[m.chosen[i]].score) ++column;
        write(run, m, i * per_box_, box, column, score(run, box, column));
        continue;
      }
      arithmetic::partial_sort(m.order, listed, classes_,
                               [&](int32_t a, int32_t b) { return score(run, box, a) > score(run, box, b); });
      for (int64_t k = 0; k < listed; ++k) {
        write(run, m, i * per_box_ + k, box, m.order[k], score(run, box, m.order[k]));
      }
    }
    return found;
  }

  // One suppression per class; the best of all classes, ties by class, then by order within it.
  int64_t regular(const Run& run, Memory& m) const {
    int64_t kept = 0;
    for (int64_t column = 0; column < classes_; ++column) {
      int64_t count = 0;
      for (int64_t i = 0; i < boxes_; ++i) {
        run.check();
        const float s = score(run, i, column);
        if (s >= score_threshold_) m.candidates[count++] = {s, static_cast<int32_t>(i)};
      }
      const int64_t found = suppress(run, m, count, per_class_);
      for (int64_t i = 0; i < found; ++i) {
        const ScoredBox& c = m.candidates[m.chosen[i]];
        m.detections[kept + i] = {c.score, c.box, static_cast<int32_t>(column)};
      }
      // Within one class, equal scores are in the order of the boxes already.
      std::sort(m.detections, m.detections + kept + found, [](const Detection& a, const Detection& b) {
        if (a.score != b.score) return a.score > b.score;
        return a.column != b.column ? a.column < b.column : a.box < b.box;
      });
      kept = std::min(kept + found, most_);
    }
    for (int64_t i = 0; i < kept; ++i) {
      const Detection& d = m.detections[i];
      write(run, m, i, d.box, d.column, d.score);
    }
    return kept;
  }

  DetectionReals encodings_, scores_, anchors_;
  bool regular_;
  int64_t most_, per_box_, per_class_, classes_;
  float score_threshold_, overlap_threshold_;
  double scale_y_, scale_x_, scale_h_, scale_w_;
  int64_t boxes_, code_, columns_, room_;
};

std::unique_ptr<Kernel> make_detection_postprocess(const Step& step, const CoreSet&) {
  return std::make_unique<DetectionPostprocess>(step);
}

BITTRUE_OPERATOR(detection_postprocess, make_detection_postprocess)

}  // namespace
}  // namespace bittrue
