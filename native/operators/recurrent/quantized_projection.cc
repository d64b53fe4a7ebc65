#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/layers/weights.h"
#include "operators/quantization/dynamic_scale.h"
#include "operators/recurrent/projection.h"

namespace bittrue {
namespace {

// The zero point of a direction's weights; several must agree, and those of signed weights be 0, as the reference says.
int64_t one_zero_point(const Operand& points, bool is_signed, int64_t direction) {
  const std::vector<int64_t> all = points.integers();
  if (points.rank() < 2) return all[static_cast<size_t>(direction)];
  for (const int64_t point : all) require(point == all[0] && (!is_signed || point == 0), "several zero points");
  return all[0];
}

class QuantizedProjection final : public Projection {
 public:
  QuantizedProjection(const Step& step, const CoreSet& cores, const ProjectionPart& part, size_t scale)
      : part_(part),
        core_(step.rule("accumulate") == "s16_pairs_s32_wrap" ? cores.pair_product() : cores.byte_product()),
        quantize_(cores.quantize_reals()) {
    const Operand &weights = step.input(part.input), &scales = step.input(scale), &points = step.input(scale + 1);
    const std::string& sums = step.rule("accumulate");
    const bool is_signed = weights.type == Type::s8, in_pairs = sums == "s16_pairs_s32_wrap";
    require(has_dynamic_scale(step) && step.rule("quotient") == "binary32" && step.rule("to_integer") == "clamp_even" &&
                (in_pairs ? is_signed : sums == "s32_wrap") && step.rule("scale_back") == "binary32_product_of_scales",
            "no native rule for these slots");
    require(weights.constant != nullptr && scales.constant != nullptr && points.constant != nullptr &&
                is_8bit(weights.type) && scales.type == Type::f32 && part.columns == part.all,
            "weights are computed");
    require(part.depth <= int64_t{1} << 24 && part.columns <= int64_t{1} << 24, "the matrices are very large");
    const int64_t each = scales.rank() < 2 ? 1 : part.columns;
    require(scales.elements == part.directions * each && points.elements % part.directions == 0 &&
                (points.rank() >= 2 || points.elements == part.directions),
            "one scale per direction or column is needed");
    depth_ = round_up(part.depth, 4);
    most_ = core_.lanes * core_.vectors;
    width_ = round_up(part.columns, core_.lanes);
    const auto* bytes = static_cast<const uint8_t*>(weights.constant);
    std::vector<float> given(static_cast<size_t>(scales.elements));
    std::memcpy(given.data(), scales.constant, given.size() * sizeof(float));
    packed_.assign(static_cast<size_t>(part.directions * width_ * depth_), 0);
    for (int64_t d = 0; d < part.directions; ++d) {
      // Unsigned weights are kept less 128.
      const int64_t zero_point = one_zero_point(points, is_signed, d) - (is_signed ? 0 : 128);
      zero_points_.push_back(zero_point);
      for (int64_t n = 0; n < part.columns; ++n) {
        const int64_t panel = n / most_ * most_, wide = std::min(most_, width_ - panel);
        int8_t* to = packed_.data() + (d * width_ + panel) * depth_ + 4 * (n - panel);
        int64_t sum = 0;
        for (int64_t k = 0; k < part.depth; ++k) {
          const uint8_t stored = bytes[(d * part.depth + k) * part.columns + n];
          const auto value = static_cast<int8_t>(is_signed ? stored : stored ^ 0x80);
          to[k / 4 * 4 * wide + k % 4] = value;
          sum += value;
        }
        factors_.push_back(zero_point_factor(part.depth, zero_point, sum));
        scales_.push_back(given[static_cast<size_t>(each == 1 ? d : d * part.columns + n)]);
      }
    }
  }

  int64_t worker_bytes(int64_t most_rows) const override {
    return round_up(most_rows * depth_, 64) + round_up(kRows * most_ * 4, 64);
  }

  bool multiply(const Run& run, int64_t direction, const float* rows, int64_t count, const Addend& addend, float* out,
                const uint8_t*, uint8_t* scratch) const override {
    const Extremes all = extremes_of(rows, count * part_.depth);
    const DynamicScale to = dynamic_scale(all);
    if (all.missing != 0 || !std::isfinite(to.scale)) return false;
    const QuantizeSpec spec = all_bytes(to);
    if (depth_ == part_.depth) {
      quantize_(spec, rows, scratch, count * depth_);
    } else {
      // What fills up meets weights of zero.
      for (int64_t r = 0; r < count; ++r) {
        quantize_(spec, rows + r * part_.depth, scratch + r * depth_, part_.depth);
        std::memset(scratch + r * depth_ + part_.depth, 0, static_cast<size_t>(depth_ - part_.depth));
      }
    }
    auto* sums = reinterpret_cast<int32_t*>(scratch + round_up(count * depth_, 64));
    bool finite = true;
    for (int64_t first = 0; first < count; first += kRows) {
      const int64_t some = std::min(kRows, count - first);
      run.check();
      for (int64_t c = 0; c < width_; c += most_) {
        const int64_t wide = std::min(most_, width_ - c);
        ByteRows part;
        part.rows = scratch + first * depth_;
        part.row_step = depth_;
        part.count = some;
        part.depth = depth_;
        part.sums = sums;
        part.stride = wide;
        core_.run(part, packed_.data() + (direction * width_ + c) * depth_, wide);
        for (int64_t r = 0; r < some; ++r) {
          finite &= finish(sums + r * wide, direction, c, to, row_term(part.rows + r * depth_, direction), addend,
                           first + r, out);
        }
      }
    }
    return finite;
  }

 private:
  static constexpr int64_t kRows = 24;  // that are worked on together

  uint32_t row_term(const uint8_t* row, int64_t direction) const {
    const auto zero_point = static_cast<uint32_t>(zero_points_[static_cast<size_t>(direction)]);
    if (zero_point == 0) return 0;
    uint32_t sum = 0;
    for (int64_t k = 0; k < part_.depth; ++k) sum += row[k];
    return 0 - zero_point * sum;
  }

  bool finish(const int32_t* sums, int64_t direction, int64_t first, const DynamicScale& from, uint32_t row_term,
              const Addend& addend, int64_t row, float* out) const {
    const int64_t used = std::min(most_, part_.columns - first);
    const uint32_t* factors = factors_.data() + direction * part_.columns + first;
    const float *scales = scales_.data() + direction * part_.columns + first, scale = from.scale;
    const auto zero_point = static_cast<uint32_t>(from.zero_point);
    float* target = out + row * part_.columns + first;
    for (int64_t n = 0; n < used; ++n) {
      const auto total = static_cast<int32_t>(static_cast<uint32_t>(sums[n]) + zero_point * factors[n] + row_term);
      target[n] = static_cast<float>(total) * (scale * scales[n]);
    }
    if (addend.from != nullptr) {
      const float* start = addend.from + row * addend.down + first;
      for (int64_t n = 0; n < used; ++n) target[n] = start[n] + target[n];
    }
    return all_finite(target, used);
  }

  ProjectionPart part_;
  const ByteProduct& core_;
  QuantizeReals quantize_;
  int64_t depth_ = 0, most_ = 0, width_ = 0;
  std::vector<int8_t> packed_;  // [directions][panels][depth / 4][columns of the panel][4]
  std::vector<int64_t> zero_points_;
  std::vector<uint32_t> factors_;  // of the rows' zero point
  std::vector<float> scales_;
};

}  // namespace

std::unique_ptr<Projection> make_quantized_projection(const Step& step, const CoreSet& cores,
                                                      const ProjectionPart& part, size_t scale) {
  return std::make_unique<QuantizedProjection>(step, cores, part, scale);
}

}  // namespace bittrue
