// Matrix product in plain C++: dot products of 16-bit integers, which compilers turn into multiply-adds of pairs where
// the baseline has them (SSE2, NEON).
#include <algorithm>
#include <cstring>
#include <vector>

#include "isa/portable/cores.h"
#include "isa/portable/requantize.h"
#include "isa/portable/scalar_requantize.h"
#include "isa/portable/turned_weights.h"

namespace bittrue::portable {
namespace {

constexpr int64_t kPanel = 16, kTogether = 4;
constexpr int64_t kDepthStretch = 2048;  // bytes of depth at a time: |sum| <= 255 * 128 * 2048 < 2^31

// Rows of weights follow one another at a distance of `stride`.
void dot4(const int16_t* row, const int16_t* weights, int64_t stride, int64_t count, uint32_t* acc) {
  const int16_t *w0 = weights, *w1 = weights + stride, *w2 = weights + 2 * stride, *w3 = weights + 3 * stride;
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (int64_t d = 0; d < count; ++d) {
    s0 += row[d] * w0[d];
    s1 += row[d] * w1[d];
    s2 += row[d] * w2[d];
    s3 += row[d] * w3[d];
  }
  acc[0] += static_cast<uint32_t>(s0);
  acc[1] += static_cast<uint32_t>(s1);
  acc[2] += static_cast<uint32_t>(s2);
  acc[3] += static_cast<uint32_t>(s3);
}

// The same, but sums of two products are clamped to 16 bits.
void pairs4(const int16_t* row, const int16_t* weights, int64_t stride, int64_t count, uint32_t* acc) {
  for (int n = 0; n < 4; ++n, weights += stride) {
    int32_t total = 0;
    for (int64_t d = 0; d < count; d += 2) {
      total += std::clamp(row[d] * weights[d] + row[d + 1] * weights[d + 1], -32768, 32767);
    }
    acc[n] += static_cast<uint32_t>(total);
  }
}

class PortableMatmul final : public Matmul {
 public:
  explicit PortableMatmul(const MatmulSpec& spec)
      : columns_(spec.columns),
        depth_(spec.depth),
        total_(spec.segments * spec.depth),
        panels_((spec.columns + kPanel - 1) / kPanel),
        weights_(static_cast<size_t>(panels_ * kPanel * total_)),
        bias_(static_cast<size_t>(panels_ * kPanel)),
        row_terms_(spec.row_terms),
        sums_(spec.sums),
        pairs_(spec.pairs),
        requantizer_(requantize_of(spec)) {
    std::copy(spec.weights, spec.weights + columns_ * total_, weights_.begin());
    std::copy(spec.bias, spec.bias + columns_, bias_.begin());
  }

  int64_t panels() const override { return panels_; }
  int64_t first_column(int64_t panel) const override { return panel < panels_ ? panel * kPanel : columns_; }
  int64_t tile_rows() const override { return 1; }
  bool takes_grids() const override { return false; }

  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override {
    int16_t wide[kDepthStretch];
    for (int64_t r = 0; r < rows.count; ++r) {
      if (total_ <= kDepthStretch) widen(rows, r, 0, total_, wide);
      for (int64_t panel = first_panel; panel < last_panel; ++panel) {
        uint32_t acc[kPanel];
        const uint32_t term = row_terms_ ? static_cast<uint32_t>(rows.row_terms[r]) : 0;
        for (int64_t n = 0; n < kPanel; ++n) acc[n] = static_cast<uint32_t>(bias_[panel * kPanel + n]) + term;
        for (int64_t begin = 0; begin < total_; begin += kDepthStretch) {
          const int64_t end = std::min(total_, begin + kDepthStretch);
          if (total_ > kDepthStretch) widen(rows, r, begin, end, wide);
          const int64_t last = std::min(kPanel, columns_ - panel * kPanel);
          for (int64_t n = 0; n < last; n += kTogether) {
            (pairs_ ? pairs4 : dot4)(wide, weights_.data() + (panel * kPanel + n) * total_ + begin, total_, end - begin,
                                     acc + n);
          }
        }
        int32_t sums[kPanel];
        for (int64_t n = 0; n < kPanel; ++n) sums[n] = static_cast<int32_t>(acc[n]);
        uint8_t* out = rows.out + r * rows.out_stride;
        const int64_t used = std::min(kPanel, columns_ - panel * kPanel);
        if (sums_) {
          std::memcpy(out + panel * kPanel * 4, sums, static_cast<size_t>(used) * 4);
        } else {
          requantizer_.run(sums, panel * kPanel, used, out + panel * kPanel);
        }
      }
    }
  }

 private:
  // Bytes [begin, end) of one row, its segments one after the other.
  void widen(const MatmulRows& rows, int64_t r, int64_t begin, int64_t end, int16_t* wide) const {
    for (int64_t at = begin; at < end;) {
      const int64_t segment = at / depth_, inside = at % depth_, size = std::min(depth_ - inside, end - at);
      const uint8_t* from = rows.rows[segment * rows.capacity + r] + inside;
      for (int64_t i = 0; i < size; ++i) wide[at - begin + i] = from[i];
      at += size;
    }
  }

  int64_t columns_, depth_, total_, panels_;
  std::vector<int16_t> weights_;
  std::vector<int32_t> bias_;
  bool row_terms_, sums_, pairs_;
  Requantizer requantizer_;
};

}  // namespace

std::unique_ptr<Matmul> make_matmul(const MatmulSpec& spec) {
  if (spec.by_rows) return make_matmul(ByColumns(spec).spec());
  return std::make_unique<PortableMatmul>(spec);
}

}  // namespace bittrue::portable
