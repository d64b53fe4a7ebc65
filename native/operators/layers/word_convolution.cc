// word_convolution: twin of src/bittrue/operators/layers/word_convolution.py: windows of all words make one product.
#include <algorithm>
#include <atomic>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/layers/fused_product.h"
#include "operators/layers/single_rows.h"

namespace bittrue {
namespace {

class WordConvolution final : public Kernel {
 public:
  WordConvolution(const Step& step, const CoreSet& cores) : core_(cores.real_matmul()), tanh_(cores.real_function()) {
    const Operand &words = step.input(0), &filters = step.input(1), &bias = step.input(2), &table = step.input(3);
    require(step.rule("real_product") == "binary32_fused_blocks" &&
                step.rule("real_function") == "binary32_fused_polynomials",
            "no native rule for these slots");
    for (const Operand* operand : {&filters, &bias, &table, &step.output()}) {
      require(operand->type == Type::f32 && operand->dense(), "no native kernel for these types");
    }
    require(words.type == Type::s32 && words.dense() && words.rank() == 2 && filters.rank() == 4 && table.rank() == 2,
            "no native kernel for these types");
    words_ = words.shape[0], length_ = words.shape[1], filters_ = filters.shape[0], width_ = filters.shape[2];
    characters_ = table.shape[0], size_ = table.shape[1];
    require(filters.shape[1] == 1 && filters.shape[3] == size_ && size_ > 0 && width_ >= 1 && width_ <= length_ &&
                filters_ > 0 && bias.elements == filters_ && step.output().elements == words_ * filters_,
            "the shapes do not fit");
  }
  std::string note() const override { return "windows of all words at once"; }
  bool tells_nan() const override { return true; }
  int64_t scratch_bytes(int threads) const override {
    return round_up(words_ * 8, 64) + round_up(most() * depth() * 4, 64) + round_up(most() * filters_ * 4, 64) +
           packed_bytes() + threads * product().worker_bytes();
  }

  void run(const Run& run) const override {
    auto* spans = reinterpret_cast<int64_t*>(run.scratch);
    auto* windows = reinterpret_cast<float*>(run.scratch + round_up(words_ * 8, 64));
    float* found = windows + round_up(most() * depth() * 4, 64) / 4;
    float* packed = found + round_up(most() * filters_ * 4, 64) / 4;
    const int64_t count = gather(run, spans, windows);
    const auto *filters = reals(run, 1), *bias = reals(run, 2);
    std::atomic<bool> finite{true};
    if (count == 1) {
      // A single row is added up in another order.
      sums_of_lanes_of_eight(filters, windows, depth(), filters_, found);
      finish(bias, 1, found);
    } else {
      const FusedProduct product = this->product();
      run.pool.parallel(product.panels(), [&](int64_t p, int) { product.pack(filters, true, p, packed); });
      const int64_t tasks = (count + FusedProduct::kRows - 1) / FusedProduct::kRows;
      run.pool.parallel(tasks, [&](int64_t task, int worker) {
        const int64_t first = task * FusedProduct::kRows, rows = std::min(FusedProduct::kRows, count - first);
        uint8_t* scratch = reinterpret_cast<uint8_t*>(packed) + packed_bytes() + worker * product.worker_bytes();
        float* to = found + first * filters_;
        if (!product.multiply_all(windows + first * depth(), rows, packed, {}, to, filters_, scratch)) {
          finite.store(false, std::memory_order_relaxed);
        }
        finish(bias, rows, to);
      });
    }
    // What becomes of NaN is the reference's to tell.
    if (!finite.load(std::memory_order_relaxed) || !all_finite(found, count * filters_)) throw Undefined();
    for (int64_t word = 0; word < words_; ++word) {
      float* out = reinterpret_cast<float*>(run.outputs[0]) + word * filters_;
      std::fill_n(out, filters_, -1e12f);
      for (int64_t k = 0; k < spans[word] - width_ + 1; ++k, found += filters_) {
        for (int64_t f = 0; f < filters_; ++f) out[f] = found[f] < out[f] ? out[f] : found[f];
      }
    }
  }

 private:
  static const float* reals(const Run& run, size_t input) { return reinterpret_cast<const float*>(run.inputs[input]); }
  int64_t depth() const { return width_ * size_; }
  int64_t most() const { return words_ * (length_ - width_ + 1); }
  FusedProduct product() const { return {core_, depth(), filters_, 1.0f, false}; }
  int64_t packed_bytes() const { return round_up(product().matrix_numbers() * 4, 64); }

  // The windows of all words, and how many characters each word has, or a window has; returns how many windows there are.
  int64_t gather(const Run& run, int64_t* spans, float* to) const {
    const auto* words = reinterpret_cast<const int32_t*>(run.inputs[0]);
    const float* begin = to;
    for (int64_t word = 0; word < words_; ++word, words += length_) {
      run.check();
      const int64_t characters = std::count_if(words, words + length_, [](int32_t c) { return c > 0; });
      const int64_t span = std::max(characters, width_);
      const bool known = std::all_of(words, words + span, [&](int32_t c) { return c >= 0 && c < characters_; });
      // Words without characters, and characters without a row, are the reference's to tell.
      if (words[0] <= 0 || !known) throw Undefined();
      spans[word] = span;
      for (int64_t k = 0; k < span - width_ + 1; ++k) {
        for (int64_t i = 0; i < width_; ++i) to = std::copy_n(reals(run, 3) + words[k + i] * size_, size_, to);
      }
    }
    return (to - begin) / depth();
  }

  void finish(const float* bias, int64_t rows, float* found) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t f = 0; f < filters_; ++f) found[r * filters_ + f] = found[r * filters_ + f] + bias[f];
    }
    tanh_(RealFunction::tanh, found, found, rows * filters_);
  }

  const RealMatmul& core_;
  RealFunctionCore tanh_;
  int64_t words_ = 0, length_ = 0, filters_ = 0, width_ = 0, characters_ = 0, size_ = 0;
};

std::unique_ptr<Kernel> make_word_convolution(const Step& step, const CoreSet& cores) {
  return std::make_unique<WordConvolution>(step, cores);
}

BITTRUE_OPERATOR(word_convolution, make_word_convolution)

}  // namespace
}  // namespace bittrue
