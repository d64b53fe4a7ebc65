#include "operators/layers/tiled_product.h"

#include <algorithm>
#include <cmath>

#include "core/share.h"
#include "rules/dot.h"

namespace bittrue {
namespace {

constexpr int64_t kTall = 8, kWide = 4;
constexpr int64_t kSmall = 20;  // smaller products are made result by result

// Terms below `whole` take turns in chains, whose sum takes the others.
template <int kChains>
float in_chains(const float* x, const float* w, int64_t whole, int64_t terms) {
  float parts[kChains] = {};
  for (int64_t k = 0; k < whole; k += kChains) {
    for (int c = 0; c < kChains; ++c) parts[c] += x[k + c] * w[k + c];
  }
  float total = parts[0] + parts[1];
  if constexpr (kChains == 4) total = total + (parts[2] + parts[3]);
  for (int64_t k = whole; k < terms; ++k) total += x[k] * w[k];
  return total;
}

// Two sets of four lanes in turn.
float in_turns(const float* x, const float* w, int64_t terms) {
  const int64_t fours = terms / 4, pairs = fours / 2 * 2;
  if (fours == 0) {
    float total = x[0] * w[0];
    for (int64_t k = 1; k < terms; ++k) total += x[k] * w[k];
    return total;
  }
  float sets[2][4];
  for (int64_t i = 0; i < std::max<int64_t>(pairs, 1); ++i) {
    for (int lane = 0; lane < 4; ++lane) {
      const float product = x[4 * i + lane] * w[4 * i + lane];
      sets[i % 2][lane] = i < 2 ? product : sets[i % 2][lane] + product;
    }
  }
  for (int lane = 0; lane < 4 && pairs > 0; ++lane) {
    sets[0][lane] += sets[1][lane];
    if (pairs < fours) sets[0][lane] += x[4 * pairs + lane] * w[4 * pairs + lane];
  }
  float total = (sets[0][0] + sets[0][2]) + (sets[0][1] + sets[0][3]);
  for (int64_t k = 4 * fours; k < terms; ++k) total += x[k] * w[k];
  return total;
}

// Four lanes, those of terms behind the last four counted from the end.
float in_fused_lanes(const float* x, const float* w, int64_t terms) {
  float lanes[4] = {};
  int64_t k = 0;
  for (; k + 4 <= terms; k += 4) {
    for (int lane = 0; lane < 4; ++lane) lanes[lane] = std::fma(w[k + lane], x[k + lane], lanes[lane]);
  }
  const int64_t back = terms % 4 == 0 ? 4 : 4 - terms % 4;
  for (int64_t lane = 0; lane < 4 && k < terms; ++lane) {
    const int64_t at = terms - 4 + lane;
    lanes[lane] = std::fma(w[at], lane < back ? 0.0f : x[at], lanes[lane]);
  }
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

}  // namespace

TiledProduct::TiledProduct(const Step& step, const CoreSet& cores, int64_t filters, int64_t terms, int64_t rows)
    : core_(cores.real_matmul()),
      from_bias_(step.rule("sum_of_products") == "binary32_fused_from_bias"),
      fused_(step.rule("sum_of_products") != "binary32_in_tiles"),
      turns_(fused_ && !from_bias_),
      filters_(filters),
      terms_(terms),
      rows_(rows) {
  require(suits(step) || from_bias_, "no native rule for sums");
  require(filters > 0 && terms > 0 && rows > 0 && terms <= int64_t{1} << 31, "no matrix that can be multiplied");
}

bool TiledProduct::suits(const Step& step) {
  const auto rule = step.rules.find("sum_of_products");
  return rule != step.rules.end() && (rule->second == "binary32_in_tiles" || rule->second == "binary32_fused_in_tiles");
}

TiledProduct::Order TiledProduct::order() const {
  if (from_bias_) return Order::tiles;
  if (fused_) return rows_ == 1 && filters_ >= kWide && terms_ >= kWide ? Order::row : Order::tiles;
  if (rows_ == 1) return Order::row;
  if (filters_ == 1) return Order::filter;
  return rows_ + filters_ + terms_ < kSmall ? Order::few : Order::tiles;
}

int64_t TiledProduct::width(int64_t p) const {
  return round_up(std::min(panel(), filters_ - p * panel()), core_.lanes);
}

int64_t TiledProduct::padded() const { return (panels() - 1) * panel() + width(panels() - 1); }

int64_t TiledProduct::worker_bytes() const {
  return round_up(2 * kRows * 8, 64) + 2 * round_up(kRows * panel() * 4, 64) + round_up(kRows * 8 * 4, 64);
}

void TiledProduct::pack(const float* weights, float* packed) const {
  const int64_t before = terms_ - late();
  for (int64_t p = 0; p < panels(); ++p) {
    const int64_t wide = width(p), first = p * panel(), used = std::min(wide, filters_ - first);
    for (int64_t k = 0; k < terms_ + late(); ++k, packed += wide) {
      // Behind all terms stand the late ones once more, as 1, 2, 3, 0 and the rest.
      int64_t from = k;
      if (k >= terms_) from = before + (k - terms_ < 4 ? (k - terms_ + 1) % 4 : k - terms_);
      for (int64_t i = 0; i < used; ++i) packed[i] = weights[(first + i) * terms_ + from];
      std::fill(packed + used, packed + wide, 0.0f);
    }
  }
}

float TiledProduct::alone(const float* row, const float* weights) const {
  if (fused_) return in_fused_lanes(row, weights, terms_);
  switch (order()) {
    case Order::row: return rules::lanes_4_by_halves(weights, row, terms_, 0.0f, filters_ == 1);
    case Order::filter: return rules::lanes_4_by_halves(row, weights, terms_, 0.0f, false);
    default: return in_turns(row, weights, terms_);
  }
}

void TiledProduct::multiply(const float* const* rows, int64_t first, int64_t count, int64_t begin, int64_t end,
                            const float* weights, const float* packed, const float* bias, uint8_t* scratch,
                            float* out) const {
  const int64_t last = std::min(filters_, end * panel());
  if (order() != Order::tiles) {
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t f = begin * panel(); f < last; ++f) out[r * filters_ + f] = alone(rows[r], weights + f * terms_);
    }
    return;
  }
  for (int64_t p = begin; p < end; ++p) {
    panel_of(rows, first, count, p, packed + p * panel() * (terms_ + late()), bias, scratch, out + p * panel());
  }
  if (fused_) return;
  const int64_t whole = std::min(count, rows_ / kWide * kWide - first), four = filters_ / kWide * kWide;
  for (int64_t f = std::max(begin * panel(), filters_ / kTall * kTall); f < last; ++f) {
    const float* own = weights + f * terms_;
    for (int64_t r = 0; r < whole; ++r) {
      out[r * filters_ + f] = f < four ? in_chains<2>(rows[r], own, terms_ / 8 * 8, terms_)
                                       : in_chains<4>(rows[r], own, terms_ / 4 * 4, terms_);
    }
  }
}

void TiledProduct::panel_of(const float* const* rows, int64_t first, int64_t count, int64_t p, const float* packed,
                            const float* bias, uint8_t* scratch, float* out) const {
  const int64_t wide = width(p), used = std::min(wide, filters_ - p * panel()), before = terms_ - late();
  auto** shifted = reinterpret_cast<const float**>(scratch);
  scratch += round_up(2 * kRows * 8, 64);
  auto* sums = reinterpret_cast<float*>(scratch);
  auto* other = reinterpret_cast<float*>(scratch + round_up(kRows * panel() * 4, 64));
  auto* turned = reinterpret_cast<float*>(scratch + 2 * round_up(kRows * panel() * 4, 64));
  std::fill_n(sums, count * wide, 0.0f);
  for (int64_t r = 0; r < count && from_bias_ && bias != nullptr; ++r) {
    std::copy_n(bias + p * panel(), used, sums + r * wide);
  }
  RealRows work;
  work.rows = rows, work.capacity = kRows, work.count = count, work.stride = wide, work.sums = sums,
  work.depth = before;
  const auto& run = fused_ ? core_.run_fused : core_.run;
  if (before > 0) run(work, packed, wide);
  if (late() > 0) {
    std::copy_n(sums, count * wide, other);
    work.rows = shifted, work.depth = late();
    for (int64_t r = 0; r < count; ++r) shifted[r] = rows[r] + before;
    run(work, packed + before * wide, wide);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < late(); ++k) turned[r * 8 + k] = rows[r][before + (k < 4 ? (k + 1) % 4 : k)];
      shifted[r] = turned + r * 8;
    }
    work.sums = other;
    run(work, packed + terms_ * wide, wide);
  }
  for (int64_t r = 0; r < count; ++r) {
    const bool upper = (first + r) % kTall < 4;
    for (int64_t i = 0; i < used; ++i) {
      const bool in_order = late() == 0 || (upper && (p * panel() + i) % kTall < 4);
      out[r * filters_ + i] = (in_order ? sums : other)[r * wide + i];
    }
  }
}

}  // namespace bittrue
