#include "operators/layers/exact_products.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/share.h"
#include "operators/core/any_type.h"
#include "operators/core/late_scales.h"
#include "operators/layers/fused_product.h"
#include "operators/layers/integer_finish.h"
#include "operators/layers/spatial_axis.h"
#include "operators/layers/tensor_products.h"

namespace bittrue {
namespace {

bool is_late(const Step& step) { return step.integers.count("late") != 0 && step.integer("late", 0, 1) != 0; }

// Zero points of one operand: the plan's, or this run's; one, or one per column.
class ExactPoints {
 public:
  ExactPoints(const Step& step, const std::string& name, size_t input, int64_t most)
      : late_(is_late(step)), given_(step, late_ ? input : SIZE_MAX, most) {
    if (late_) return;
    if (!step.has_array(name + "s")) {
      known_ = {step.integer(name.c_str())};
      return;
    }
    const Array& points = step.array(name + "s");
    require(points.count == most, "zero points of another form");
    for (int64_t i = 0; i < points.count; ++i) known_.push_back(points.integer(i));
  }
  int64_t at(const Run& run, int64_t i) const {
    if (late_) return static_cast<int64_t>(given_.at(run, i));
    return known_[known_.size() == 1 ? 0 : static_cast<size_t>(i)];
  }

 private:
  bool late_;
  LateNumbers given_;
  std::vector<int64_t> known_;
};

// The windows of a convolution as rows [channels][taps].
struct ExactWindows {
  SpatialAxis d, h, w;
  int64_t channels, terms;         // of a group, and of a window
  int64_t per_channel, per_pixel;  // elements from one to the next

  // The numbers of the windows of one image and group from position `first` on, less the zero point; 0 outside.
  template <class Center>
  void rows(const int64_t* image, int64_t first, int64_t count, const Center& center, double* to) const {
    for (int64_t i = first; i < first + count; ++i) {
      const int64_t x = i % w.out, y = i / w.out % h.out, z = i / w.out / h.out;
      const int64_t at[] = {z * d.stride - d.before, y * h.stride - h.before, x * w.stride - w.before};
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t* plane = image + c * per_channel;
        for (int64_t k = 0; k < d.taps; ++k) {
          for (int64_t j = 0; j < h.taps; ++j) {
            const int64_t deep = at[0] + k * d.dilation, high = at[1] + j * h.dilation;
            const bool inside = deep >= 0 && deep < d.dimension && high >= 0 && high < h.dimension;
            for (int64_t l = 0; l < w.taps; ++l) {
              const int64_t wide = at[2] + l * w.dilation;
              const bool taken = inside && wide >= 0 && wide < w.dimension;
              const int64_t pixel = (deep * h.dimension + high) * w.dimension + wide;
              *to++ = taken ? center(plane[pixel * per_pixel]) : 0.0;
            }
          }
        }
      }
    }
  }
};

class ExactProducts final : public Kernel {
 public:
  // A convolution where `products` is null.
  ExactProducts(const Step& step, const CoreSet& cores, const ProductSizes* products)
      : convolves_(products == nullptr),
        last_(convolves_ && step.integer("channels_last", 0, 1) != 0),
        windows_(convolves_ ? windows_of(step) : std::make_unique<ExactWindows>()),
        p_(convolves_ ? products_of(step) : *products),
        product_(cores.wide_matmul(), p_.depth, p_.columns, 1.0, true),
        left_(step.input(0).type),
        right_(step.input(1).type),
        writer_(step.output().type),
        left_points_(step, "input_zero_point", ProductOperands::kRowPoint, 1),
        right_points_(step, "weight_zero_point", ProductOperands::kColumnPoints,
                      convolves_ ? p_.columns * p_.right_matrices : p_.columns) {
    const Operand &x = step.input(0), &w = step.input(1), &out = step.output();
    require(is_integer(x.type) && is_integer(w.type) && type_bytes(x.type) <= 2 && type_bytes(w.type) <= 2,
            "no native kernel for these types");
    require(x.dense() && w.dense() && out.dense() && !step.has_input(ProductOperands::kAddend),
            "no native kernel for these operands");
    require(step.bounded && step.magnitude < int64_t{1} << 53, "sums may be inexact");
    if (step.rules.count("center") != 0) {
      require(step.rule("center") == "s16_wrap", "no native rule for this slot");
      wraps_ = true;
    }
    const std::string& rule = step.rule("accumulate");
    bits_ = rule == "s16_wrap" ? 16 : rule == "s32_wrap" ? 32 : 64;
    require(bits_ != 64 || rule == "s64", "no native rule for this slot");
    left_elements_ = x.elements, right_elements_ = w.elements;
    require(out.elements == p_.matrices() * p_.rows * p_.columns, "the shapes do not fit");
  }

  std::string note() const override { return "products in binary64"; }
  int64_t scratch_bytes(int threads) const override { return shared_bytes() + threads * worker_bytes(); }

  void run(const Run& run) const override {
    auto* left = reinterpret_cast<int64_t*>(run.scratch);
    auto* right = left + round_up(left_elements_, 8);
    auto* packed = reinterpret_cast<double*>(right + round_up(right_elements_, 8));
    left_.integers(run.inputs[0], left, left_elements_);
    right_.integers(run.inputs[1], right, right_elements_);
    const int64_t one = p_.depth * p_.columns, point = left_points_.at(run, 0);
    run.pool.parallel(p_.right_matrices, [&](int64_t m, int worker) {
      auto* plain = worker_memory(run, worker);
      const bool by_columns = p_.transpose_b;
      for (int64_t i = 0; i < one; ++i) {
        const int64_t column = by_columns ? i / p_.depth : i % p_.columns;
        plain[i] = centered(right[m * one + i], right_points_.at(run, convolves_ ? m * p_.columns + column : column));
      }
      product_.pack_all(plain, by_columns, packed + m * product_.matrix_numbers());
    });
    const int64_t blocks = (p_.rows + kBlock - 1) / kBlock;
    const auto center = [&](int64_t q) { return centered(q, point); };
    run.pool.parallel(p_.matrices() * blocks, run.pool.threads_for(p_.work()), [&](int64_t task, int worker) {
      run.check(worker);
      const int64_t matrix = task / blocks, first = task % blocks * kBlock, count = std::min(kBlock, p_.rows - first);
      double* rows = worker_memory(run, worker);
      double* sums = rows + round_up(kBlock * p_.depth, 8);
      auto* scratch = reinterpret_cast<uint8_t*>(sums + round_up(kBlock * p_.columns, 8));
      const int64_t* from = left + p_.left[matrix] * p_.rows * p_.depth;
      if (convolves_) {
        windows_->rows(image_of(left, matrix), first, count, center, rows);
      } else {
        for (int64_t r = 0; r < count; ++r) {
          for (int64_t k = 0; k < p_.depth; ++k) {
            rows[r * p_.depth + k] =
                center(p_.transpose_a ? from[k * p_.rows + first + r] : from[(first + r) * p_.depth + k]);
          }
        }
      }
      product_.multiply_all(rows, count, packed + p_.right[matrix] * product_.matrix_numbers(), AddendOf<double>{},
                            sums, p_.columns, scratch);
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t n = 0; n < p_.columns; ++n) {
          auto sum = static_cast<int64_t>(sums[r * p_.columns + n]);
          sum = bits_ == 16 ? static_cast<int16_t>(sum) : bits_ == 32 ? static_cast<int32_t>(sum) : sum;
          writer_.store(&sum, run.outputs[0] + place_of(matrix, first + r, n) * writer_.bytes(), 1);
        }
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 48;

  std::unique_ptr<ExactWindows> windows_of(const Step& step) const {
    const Operand &x = step.input(0), &w = step.input(1), &out = step.output();
    require(x.rank() > 2 && w.rank() == x.rank() && out.rank() == x.rank() && x.elements > 0 && w.elements > 0,
            "there is nothing to do");
    auto found = std::make_unique<ExactWindows>(ExactWindows{read_spatial_axis(step, 'd'), read_spatial_axis(step, 'h'),
                                                             read_spatial_axis(step, 'w'), w.shape[1], 0, 1, 1});
    ExactWindows& v = *found;
    v.terms = v.channels * v.d.taps * v.h.taps * v.w.taps;
    (last_ ? v.per_pixel : v.per_channel) = last_ ? x.shape.back() : v.d.dimension * v.h.dimension * v.w.dimension;
    return found;
  }

  ProductSizes products_of(const Step& step) const {
    const Operand &x = step.input(0), &w = step.input(1);
    const ExactWindows& v = *windows_;
    const int64_t channels = last_ ? x.shape.back() : x.shape[1], filters = w.shape[0];
    const int64_t groups = step.integer("groups", 1, channels);
    require(channels == groups * v.channels && filters % groups == 0 && w.elements == filters * v.terms &&
                x.elements == x.shape[0] * channels * v.d.dimension * v.h.dimension * v.w.dimension,
            "the filter's shape differs");
    ProductSizes p{};
    p.rows = v.d.out * v.h.out * v.w.out, p.depth = v.terms, p.columns = filters / groups;
    p.transpose_b = true, p.left_matrices = x.shape[0] * groups, p.right_matrices = groups;
    for (int64_t i = 0; i < p.left_matrices; ++i) p.left.push_back(i), p.right.push_back(i % groups);
    return p;
  }

  // The numbers of a matrix's image and group.
  const int64_t* image_of(const int64_t* images, int64_t matrix) const {
    const int64_t groups = p_.right_matrices, per_image = left_elements_ / (p_.matrices() / groups);
    return images + matrix / groups * per_image + matrix % groups * windows_->channels * windows_->per_channel;
  }
  // Where the sum of a row and a column is stored.
  int64_t place_of(int64_t matrix, int64_t row, int64_t column) const {
    if (!convolves_) return (matrix * p_.rows + row) * p_.columns + column;
    if (!last_) return (matrix * p_.columns + column) * p_.rows + row;
    const int64_t groups = p_.right_matrices;
    return ((matrix / groups * p_.rows + row) * groups + matrix % groups) * p_.columns + column;
  }

  double centered(int64_t q, int64_t point) const {
    const int64_t difference = q - point;
    return static_cast<double>(wraps_ ? static_cast<int16_t>(static_cast<uint16_t>(difference)) : difference);
  }

  int64_t shared_bytes() const {
    return 8 * (round_up(left_elements_, 8) + round_up(right_elements_, 8) +
                round_up(p_.right_matrices * product_.matrix_numbers(), 8));
  }
  int64_t worker_bytes() const {
    const int64_t rows = round_up(kBlock * p_.depth, 8) + round_up(kBlock * p_.columns, 8);
    return std::max(8 * rows + round_up(product_.worker_bytes(), 64), 8 * round_up(p_.depth * p_.columns, 8));
  }
  double* worker_memory(const Run& run, int worker) const {
    return reinterpret_cast<double*>(run.scratch + shared_bytes() + worker * worker_bytes());
  }

  bool convolves_, last_, wraps_ = false;
  std::unique_ptr<ExactWindows> windows_;
  ProductSizes p_;
  FusedProductOf<double> product_;
  AnyReader left_, right_;
  IntegerWriter writer_;
  ExactPoints left_points_, right_points_;
  int64_t left_elements_ = 0, right_elements_ = 0;
  int bits_ = 64;
};

}  // namespace

std::unique_ptr<Kernel> make_exact_products(const Step& step, const CoreSet& cores, const ProductSizes& products) {
  return std::make_unique<ExactProducts>(step, cores, &products);
}

std::unique_ptr<Kernel> make_exact_products(const Step& step, const CoreSet& cores) {
  require(step.rules.count("accumulate") != 0 && step.rules.size() == 1 + step.rules.count("center") &&
              step.texts.count("form") == 0 && step.then == nullptr && step.integers.count("pairs_by_tap") == 0,
          "no native kernel for these types");
  if (step.name == "conv") return std::make_unique<ExactProducts>(step, cores, nullptr);
  return make_exact_products(step, cores, read_products(step));
}

std::unique_ptr<Kernel> make_or_exact(const Step& step, const CoreSet& cores, Factory factory) {
  try {
    if (auto kernel = factory(step, cores)) return kernel;
  } catch (const NoKernel&) {
    if (step.rules.count("accumulate") == 0 || step.rules.size() != 1 + step.rules.count("center")) throw;
  }
  return make_exact_products(step, cores);
}

}  // namespace bittrue
