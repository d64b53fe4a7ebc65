#include "operators/layers/real_finish.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "core/share.h"
#include "rules/plain_range.h"

namespace bittrue {

RealWeights::RealWeights(const Operand& weights) : constant_(weights.constant != nullptr) {
  require(weights.dense(), "weights must be dense");
  if (!constant_) {
    require(weights.type == Type::f32, "integer weights are computed at run time");
    return;
  }
  values_.resize(static_cast<size_t>(weights.elements));
  if (weights.type == Type::f32) {
    // Constants of files may lie at any address.
    std::memcpy(values_.data(), weights.constant, values_.size() * sizeof(float));
    return;
  }
  require(weights.type == Type::s8 || weights.type == Type::s4 || weights.type == Type::s2, "weights are signed bytes");
  const auto* bytes = static_cast<const int8_t*>(weights.constant);
  for (size_t i = 0; i < values_.size(); ++i) values_[i] = bytes[i];
}

RowQuantizer::RowQuantizer(const Step& step, int64_t rows, size_t source) : rows_(rows) {
  if (step.rules.count("sum_of_products") != 0 || step.texts.count("quantize") == 0) return;
  active_ = true;
  const std::string& mode = step.text("quantize");
  symmetric_ = mode == "symmetric";
  require(symmetric_ || mode == "asymmetric", "rows are quantized symmetrically or not");
  const std::string& rule = step.rule(symmetric_ ? "quantize_symmetric" : "quantize_asymmetric");
  wide_ = symmetric_ && rule == "binary64_range_over_127_away";
  away_ = wide_ || rule == (symmetric_ ? "binary32_range_over_127_away" : "binary32_range_over_255_away");
  ties_away_ = !symmetric_ && rule == "binary32_range_even_then_away";
  even_ = ties_away_ || (!symmetric_ && rule == "binary32_range_even");
  require(away_ || even_ ||
              rule == (symmetric_ ? "binary32_range_over_127_by_eights" : "binary32_range_over_255_by_eights"),
          "no native rule for rows");
  if (step.rules.count("weights_offset") != 0) offset_ = 7;
  require(rows > 0 && step.input(source).elements % rows == 0, "rows do not fill the input");
  size_ = step.input(source).elements / rows;
}

int64_t RowQuantizer::bytes() const {
  if (!active_) return 0;
  return round_up(rows_ * size_ * 4, 64) + round_up(rows_ * static_cast<int64_t>(sizeof(rules::RowScale)), 64);
}

const rules::RowScale* RowQuantizer::scales(const uint8_t* scratch) const {
  return reinterpret_cast<const rules::RowScale*>(scratch + round_up(rows_ * size_ * 4, 64));
}

bool RowQuantizer::all_zero(const uint8_t* scratch) const {
  const rules::RowScale* rows = scales(scratch);
  return std::all_of(rows, rows + rows_, [](const rules::RowScale& row) { return row.zero; });
}

const float* RowQuantizer::run(const Run& run, const float* input, uint8_t* scratch) const {
  if (!active_) return input;
  auto* out = reinterpret_cast<float*>(scratch);
  auto* scales = reinterpret_cast<rules::RowScale*>(scratch + round_up(rows_ * size_ * 4, 64));
  // Few rows are cut into parts.
  constexpr int64_t kMostParts = 64;
  const int threads = run.pool.threads_for(rows_ * size_);
  const int64_t parts = rows_ < threads ? std::min<int64_t>(threads, kMostParts) : 1, blocks = size_ / 8;
  const auto begin = [&](int64_t part) { return part == parts ? size_ : blocks * part / parts * 8; };
  if (parts == 1) {
    std::atomic<bool> finite{true};
    run.pool.parallel(rows_, threads, [&](int64_t r, int) {
      const rules::RowRange range = rules::row_range(input + r * size_, size_);
      scales[r] = scale_of(range);
      if (!usable(range, scales[r])) finite = false;
      convert(input + r * size_, size_, scales[r], out + r * size_);
      add_up(out + r * size_, scales[r]);
    });
    if (!finite) throw Undefined{};
    return out;
  }
  for (int64_t r = 0; r < rows_; ++r) {
    const float* x = input + r * size_;
    rules::RowRange ranges[kMostParts], whole;
    run.pool.parallel(parts, threads, [&](int64_t part, int) {
      ranges[part] = rules::row_range(x + begin(part), begin(part + 1) - begin(part));
    });
    for (int64_t part = 0; part < parts; ++part) whole = rules::joined(whole, ranges[part]);
    scales[r] = scale_of(whole);
    if (!usable(whole, scales[r])) throw Undefined{};
    run.pool.parallel(parts, threads, [&](int64_t part, int) {
      convert(x + begin(part), begin(part + 1) - begin(part), scales[r], out + r * size_ + begin(part));
    });
    add_up(out + r * size_, scales[r]);
  }
  return out;
}

// Numbers of extreme size have no steps that are even.
bool RowQuantizer::usable(const rules::RowRange& range, const rules::RowScale& row) const {
  return range.finite && (!even_ || (std::isfinite(row.inverse) && std::isfinite(row.scale)));
}

rules::RowScale RowQuantizer::scale_of(const rules::RowRange& range) const {
  if (!range.finite) return {};
  if (wide_) return rules::binary64_range_over_127(range);
  if (even_) return rules::binary32_range_even(range);
  return symmetric_ ? rules::binary32_range_over_127(range) : rules::binary32_range_over_255(range);
}

void RowQuantizer::convert(const float* x, int64_t count, const rules::RowScale& row, float* out) const {
  if (row.zero) {
    std::fill_n(out, count, 0.0f);
  } else if (even_) {
    (ties_away_ ? rules::asymmetric_even<true> : rules::asymmetric_even<false>)(x, count, row, out);
  } else if (wide_) {
    rules::symmetric_by_wide_quotients(x, count, row, out);
  } else if (away_) {
    (symmetric_ ? rules::symmetric_away : rules::asymmetric_away)(x, count, row, out);
  } else if (symmetric_) {
    rules::symmetric_by_eights(x, count, row, out);
  } else {
    rules::asymmetric_by_eights(x, count, row, out);
  }
}

void RowQuantizer::add_up(const float* row, rules::RowScale& scale) const {
  int64_t sum = 0;
  for (int64_t i = 0; i < size_ && offset_ != 0; ++i) sum += static_cast<int64_t>(row[i]);
  scale.moved = offset_ * static_cast<float>(sum);
}

RealFinish::RealFinish(const Step& step, int64_t channels, bool hybrid)
    : hybrid_(hybrid),
      has_bias_(step.has_input(2)),
      channels_(channels),
      low_(static_cast<float>(step.real("low"))),
      high_(static_cast<float>(step.real("high"))) {
  const std::string& range = step.rule("plain_range");
  if (range == "open_limits") {
    range_ = Range::open;
  } else if (range == "lower_for_nan") {
    range_ = Range::raised;
  } else if (range == "unlimited_by_signs") {
    range_ = Range::by_signs;
  } else if (range == "upper_for_nan") {
    range_ = Range::capped_first;
  } else if (range == "lower_for_nan_by_fours") {
    range_ = Range::raised_by_fours;
  } else if (range == "upper_for_nan_behind_fours" || range == "by_signs_but_behind_fours") {
    range_ = Range::rows_by_fours;
  } else {
    require(range == "type_limits" || range == "unlimited", "no native rule for the range");
  }
  if (!hybrid) {
    const std::string& sums = step.rule("sum_of_products");
    const bool columns = sums == "binary32_fused_from_bias_by_columns" || sums == "binary32_fused_by_columns_in_chains";
    fused_ = columns || sums == "binary32_fused_from_bias" || sums == "binary32_fused_in_chains";
    inside_ = sums == "binary32_from_bias_inside" || sums == "binary32_fused_from_bias_inside";
    joined_ = sums == "binary32_fused_in_order";
    if (columns) {
      const int64_t taps = step.integer("filter_h", 1, 1 << 16) * step.integer("filter_w", 1, 1 << 16);
      full_ = taps == 3 || taps == 4 || taps == 9 || taps == 25;
    }
  }
  if (has_bias_) {
    const Operand& bias = step.input(2);
    require(bias.type == Type::f32 && bias.elements == channels && bias.dense(), "one real bias per channel is needed");
  }
  // Depthwise sums without a bias are not added to anything.
  add_ = has_bias_ || step.name != "conv" || step.text("filter_layout") != "ISO";
  zeros_.assign(has_bias_ ? 0 : static_cast<size_t>(channels), 0.0f);
  if (!hybrid) return;
  const bool per_axis = step.text("quantize") == "asymmetric" && step.rules.count("scale_back_per_axis") != 0;
  const std::string& rule = step.rule(per_axis ? "scale_back_per_axis" : "scale_back");
  if (rule == "binary32_one_by_one") {
    back_ = Back::one_by_one;
  } else if (rule == "binary32_one_by_one_by_fours") {
    back_ = Back::one_by_one_by_fours;
  } else if (rule == "binary32_rows_then_fused") {
    back_ = Back::rows_joined;
  } else if (rule == "binary32_product_then_fused") {
    back_ = Back::product_joined;
  } else if (rule == "binary32_rows_first" || rule == "binary32_rows_first_by_fours") {
    back_ = rule == "binary32_rows_first" ? Back::rows_first : Back::rows_by_fours;
    const std::string& offset = step.rule("weights_offset");
    offset_joined_ = offset == "seven_apart_joined";
    require(offset_joined_ || offset == "seven_apart", "no native rule for what is added to weights");
    single_ = step.output().elements == channels;
  } else {
    require(rule == "binary32_product_of_scales", "no native rule for the scales");
  }
  const Array& scales = step.array("weight_scales");
  require(scales.count == 1 || scales.count == channels, "one scale, or one per channel");
  for (int64_t i = 0; i < channels; ++i) {
    scales_.push_back(static_cast<float>(scales.real(scales.count == 1 ? 0 : i)));
  }
  require(add_ || back_ == Back::product, "scales one by one, and no sum to add to");
}

namespace {

// Whether a total is NaN; `total(i)` gives it.
template <class Total, class Limit>
bool store(const Total& total, int64_t count, const Limit& limit, float* out) {
  uint32_t odd = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float value = total(i);
    odd |= value != value;
    out[i] = limit(value, i);
  }
  return odd != 0;
}

}  // namespace

float RealFinish::offset_start(float moved, float scale, float weight, float start) const {
  const float scaled = -moved * scale;
  return offset_joined_ ? std::fma(scaled, weight, start) : scaled * weight + start;
}

bool RealFinish::run(const float* sums, int64_t first, int64_t count, const rules::RowScale* row, const float* bias,
                     bool only_bias, float* out) const {
  const float* start = (has_bias_ ? bias : zeros_.data()) + first;
  const float low = low_, high = high_;
  const int64_t whole = channels_ / 4 * 4 - first;  // of channels that fill fours
  const auto keep = [&](const auto& total) {
    switch (range_) {
      case Range::by_signs:
        // -0 becomes 0, and nothing else changes.
        return store(
            total, count,
            [=](float v, int64_t) { return low == 0 ? rules::clamp(v, low, high) + 0.0f : rules::clamp(v, low, high); },
            out);
      case Range::open:
        return store(total, count, [=](float v, int64_t) { return rules::cap_then_raise(v, low, high); }, out);
      case Range::raised:
        return store(total, count, [=](float v, int64_t) { return rules::cap_then_raise_all(v, low, high); }, out);
      case Range::capped_first:
        return store(total, count, [=](float v, int64_t) { return std::max(low, std::min(high, v)); }, out);
      case Range::raised_by_fours:
        return store(
            total, count,
            [=](float v, int64_t i) {
              return i < whole ? std::min(std::max(low, v), high) : rules::clamp(v, low, high);
            },
            out);
      case Range::rows_by_fours: {
        bool negative = false;
        const auto limit = [=, &negative](float v, int64_t) {
          negative |= v == 0 && std::signbit(v);
          return rules::clamp(v, low, high);
        };
        return store(total, count, limit, out) || (negative && low == 0);
      }
      default: return store(total, count, [=](float v, int64_t) { return rules::clamp(v, low, high); }, out);
    }
  };
  if (from_bias()) {
    if (full_) return keep([=](int64_t i) { return sums[i]; });
    return keep([=](int64_t i) { return sums[i] + 0.0f; });
  }
  if (!hybrid_) {
    if (has_bias_) return keep([=](int64_t i) { return sums[i] + start[i]; });
    return keep([=](int64_t i) { return sums[i]; });
  }
  const bool moved = back_ == Back::rows_first || back_ == Back::rows_by_fours;
  if (only_bias && !moved && back_ != Back::rows_joined) return keep([=](int64_t i) { return start[i]; });
  const float* scales = scales_.data() + first;
  const float scale = row->scale;
  switch (back_) {
    case Back::one_by_one: return keep([=](int64_t i) { return start[i] + sums[i] * scales[i] * scale; });
    case Back::one_by_one_by_fours:
      return keep([=](int64_t i) {
        return start[i] + (i < whole ? sums[i] * scales[i] * scale : sums[i] * scale * scales[i]);
      });
    case Back::rows_joined: return keep([=](int64_t i) { return std::fma(sums[i] * scale, scales[i], start[i]); });
    case Back::product_joined: return keep([=](int64_t i) { return std::fma(sums[i], scale * scales[i], start[i]); });
    case Back::rows_first:
    case Back::rows_by_fours: {
      const bool joins = back_ == Back::rows_by_fours;
      const int64_t rounded = !joins ? count : single_ ? 0 : whole;
      return keep([=, offset = row->moved](int64_t i) {
        const float begin = offset_start(offset, scale, scales[i], start[i]), scaled = (sums[i] + offset) * scale;
        return i < rounded ? begin + scaled * scales[i] : std::fma(scaled, scales[i], begin);
      });
    }
    default: break;
  }
  if (!add_) return keep([=](int64_t i) { return sums[i] * (scale * scales[i]); });
  return keep([=](int64_t i) { return start[i] + sums[i] * (scale * scales[i]); });
}

}  // namespace bittrue
