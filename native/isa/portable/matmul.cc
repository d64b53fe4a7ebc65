// Matrix product in plain C++: integers modulo 2^32, requantized one by one.
#include <vector>

#include "isa/portable/cores.h"

namespace bittrue::portable {
namespace {

class PortableMatmul final : public Matmul {
 public:
  explicit PortableMatmul(const MatmulSpec& spec)
      : columns_(spec.columns),
        segments_(spec.segments),
        depth_(spec.depth),
        weights_(spec.weights, spec.weights + spec.columns * spec.segments * spec.depth),
        bias_(spec.bias, spec.bias + spec.columns),
        row_terms_(spec.row_terms),
        requantize_(spec.requantize) {}

  int64_t panels() const override { return (columns_ + kPanel - 1) / kPanel; }
  int64_t tile_rows() const override { return 1; }

  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override {
    const int64_t last = std::min(columns_, last_panel * kPanel);
    for (int64_t n = first_panel * kPanel; n < last; ++n) {
      for (int64_t r = 0; r < rows.count; ++r) {
        uint32_t acc = static_cast<uint32_t>(bias_[n]);
        if (row_terms_) acc += static_cast<uint32_t>(rows.row_terms[r]);
        for (int64_t s = 0; s < segments_; ++s) {
          acc += dot(rows.rows[s * rows.capacity + r], weights_.data() + (n * segments_ + s) * depth_);
        }
        const int64_t stored = rules::requantize(requantize_, static_cast<int32_t>(acc), static_cast<size_t>(n));
        rows.out[r * rows.out_stride + n] = static_cast<uint8_t>(stored);
      }
    }
  }

 private:
  static constexpr int64_t kPanel = 16;

  uint32_t dot(const uint8_t* row, const int8_t* weights) const {
    int32_t sum = 0;
    // |sum| <= 255 * 128 * 65536 < 2^31 for one stretch; the stretches add up modulo 2^32.
    uint32_t total = 0;
    for (int64_t begin = 0; begin < depth_; begin += kStretch) {
      const int64_t end = std::min(depth_, begin + kStretch);
      sum = 0;
      for (int64_t d = begin; d < end; ++d) sum += static_cast<int32_t>(row[d]) * weights[d];
      total += static_cast<uint32_t>(sum);
    }
    return total;
  }

  static constexpr int64_t kStretch = 65536;
  int64_t columns_, segments_, depth_;
  std::vector<int8_t> weights_;
  std::vector<int32_t> bias_;
  bool row_terms_;
  rules::Requantize requantize_;
};

}  // namespace

std::unique_ptr<Matmul> make_matmul(const MatmulSpec& spec) { return std::make_unique<PortableMatmul>(spec); }

}  // namespace bittrue::portable
