// Matrix product: tiles of 4 rows by 16 columns with sdot. Rows become signed as x - 128, so the bias takes 128 times the
// column's sum of weights: everything is modulo 2^32. Pairs that saturate are added up as they are.
#include <algorithm>

#include "isa/neon_dotprod/cores.h"
#include "isa/neon_dotprod/requantize.h"
#include "isa/neon_dotprod/saturating_pairs.h"
#include "isa/portable/turned_weights.h"

namespace bittrue::neon_dotprod {
namespace {

constexpr int kRows = 4, kColumns = 16, kGroup = 4;

class VectorMatmul final : public Matmul {
 public:
  VectorMatmul(const MatmulSpec& spec, const int64_t* columns, int64_t panels)
      : columns_(spec.columns),
        segments_(spec.segments),
        depth_(spec.depth),
        panels_(panels),
        row_terms_(spec.row_terms),
        sums_(spec.sums),
        pairs_(spec.pairs),
        weights_(panels * kColumns * spec.segments * spec.depth),
        bias_(panels * kColumns),
        requantizer_(portable::requantize_of(spec), columns, panels) {
    const int64_t total = segments_ * depth_;
    for (int64_t n = 0; n < columns_; ++n) {
      int8_t* packed = weights_.data() + n / kColumns * kColumns * total;
      uint32_t bias = static_cast<uint32_t>(spec.bias[n]);
      for (int64_t k = 0; k < total; ++k) {
        const int8_t weight = spec.weights[n * total + k];
        packed[(k / kGroup * kColumns + n % kColumns) * kGroup + k % kGroup] = weight;
        if (!pairs_) bias += static_cast<uint32_t>(weight * 128);
      }
      bias_.data()[n] = static_cast<int32_t>(bias);
    }
  }

  int64_t panels() const override { return panels_; }
  int64_t first_column(int64_t panel) const override { return panel < panels_ ? panel * kColumns : columns_; }
  int64_t tile_rows() const override { return kRows; }
  bool takes_grids() const override { return false; }

  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override {
    const Store store = requantizer_.store();
    with_form(requantizer_.form(), [&](auto form) {
      int32_t sums[kRows][kColumns];
      for (int64_t first = 0; first < rows.count; first += kRows) {
        const int64_t count = std::min<int64_t>(kRows, rows.count - first);
        for (int64_t panel = first_panel; panel < last_panel; ++panel) {
          with_constant<int64_t, 1, 2, 3, 4>(count, [&](auto rows_of_tile) {
            if (pairs_) return multiply<rows_of_tile.value, true>(rows, first, panel, sums);
            multiply<rows_of_tile.value, false>(rows, first, panel, sums);
          });
          for (int64_t r = 0; r < count && sums_; ++r) {
            std::memcpy(rows.out + (first + r) * rows.out_stride + panel * kColumns * 4, sums[r],
                        static_cast<size_t>(std::min<int64_t>(kColumns, columns_ - panel * kColumns)) * 4);
          }
          const Group& group = requantizer_.group(panel);
          for (int64_t r = 0; r < count && !sums_; ++r) {
            store_part(rows.out + (first + r) * rows.out_stride + panel * kColumns,
                       requantize16<form.value>(sums[r], group, store, requantizer_), columns_ - panel * kColumns);
          }
        }
      }
    });
  }

 private:
  template <int count, bool pairs>
  __attribute__((noinline)) void multiply(const MatmulRows& rows, int64_t first, int64_t panel,
                                          int32_t (*result)[kColumns]) const {
    int32x4_t sums[count][4];
    unroll<count>([&](int r) __attribute__((always_inline)) {
      const int32x4_t term = vdupq_n_s32(row_terms_ ? rows.row_terms[first + r] : 0);
      unroll<4>([&](int v) __attribute__((always_inline)) {
        sums[r][v] = add_wrapping(vld1q_s32(bias_.data() + panel * kColumns + 4 * v), term);
      });
    });
    const int8_t* weights = weights_.data() + panel * kColumns * segments_ * depth_;
    const uint8x16_t sign = vdupq_n_u8(0x80);
    for (int64_t segment = 0; segment < segments_; ++segment) {
      const uint8_t* row[count];
      unroll<count>([&](int r)
                        __attribute__((always_inline)) { row[r] = rows.rows[segment * rows.capacity + first + r]; });
      // The products of 4 bytes of depth: lane `lane` of x.
      const auto step = [&](const int8x16_t(&x)[count], auto lane) __attribute__((always_inline)) {
        unroll<4>([&](int v) __attribute__((always_inline)) {
          const int8x16_t w = vld1q_s8(weights + 16 * v);
          unroll<count>([&](int r) __attribute__((always_inline)) {
            sums[r][v] = vdotq_laneq_s32(sums[r][v], w, x[r], lane.value);
          });
        });
        weights += 64;
      };
      int64_t k = 0;
      if constexpr (pairs) {
        for (; k < depth_; k += kGroup, weights += 64) {
          Pairs::Row x[count];
          unroll<count>([&](int r) __attribute__((always_inline)) { x[r] = Pairs::row(row[r] + k); });
          unroll<4>([&](int v) __attribute__((always_inline)) {
            const Pairs::Columns w = Pairs::columns(weights + 16 * v);
            unroll<count>([&](int r) __attribute__((always_inline)) { sums[r][v] = Pairs::add(sums[r][v], x[r], w); });
          });
        }
        continue;
      }
      int8x16_t x[count];
      for (; k + 16 <= depth_; k += 16) {
        unroll<count>([&](int r) __attribute__((always_inline)) {
          x[r] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(row[r] + k), sign));
        });
        unroll<4>([&](auto lane) __attribute__((always_inline)) { step(x, lane); });
      }
      for (; k < depth_; k += kGroup) {
        unroll<count>([&](int r) __attribute__((always_inline)) {
          uint32_t four;
          std::memcpy(&four, row[r] + k, sizeof four);
          x[r] = vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_u32(vdupq_n_u32(four)), sign));
        });
        step(x, std::integral_constant<int, 0>{});
      }
    }
    unroll<count>([&](int r) __attribute__((always_inline)) {
      unroll<4>([&](int v) __attribute__((always_inline)) { vst1q_s32(result[r] + 4 * v, sums[r][v]); });
    });
  }

  int64_t columns_, segments_, depth_, panels_;
  bool row_terms_, sums_, pairs_;
  AlignedArray<int8_t> weights_;  // [panel][4 bytes of depth][column][byte]
  AlignedArray<int32_t> bias_;
  Requantizer requantizer_;
};

}  // namespace

std::unique_ptr<Matmul> make_matmul(const MatmulSpec& spec) {
  if (spec.by_rows) return make_matmul(portable::ByColumns(spec).spec());
  const int64_t panels = (spec.columns + kColumns - 1) / kColumns;
  AlignedArray<int64_t> columns(panels * kColumns);
  for (int64_t i = 0; i < panels * kColumns; ++i) columns.data()[i] = i < spec.columns ? i : -1;
  return std::unique_ptr<Matmul>(new VectorMatmul(spec, columns.data(), panels));
}

}  // namespace bittrue::neon_dotprod
