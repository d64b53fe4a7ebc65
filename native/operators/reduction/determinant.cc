// determinant and inverse: of square matrices, by elimination with the first largest pivot of every column.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "core/rounding.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

// How sums of products are made: by tiles of `columns` results of one row of the factor, side by side with those of
// packets of `lanes` columns of the other one, as rules/elimination.py says.
struct Tiles {
  int64_t lanes, packets, columns, half, cache;
  bool fours, rest_twice;
  int64_t panel() const { return std::max(lanes * packets, columns); }
};

template <class T>
constexpr Tiles tiles_of(bool once) {
  constexpr bool kSingle = sizeof(T) == 4;
  constexpr int64_t kLanes = 16 / sizeof(T);
  if (once) return {kLanes, 3, 8, kSingle ? 2 : 0, 16384, kSingle, kSingle};
  return {kLanes, 2, 4, 0, 49152, kSingle, false};
}

// Rows of a block of a triangle that is solved for `columns` right sides.
template <class T>
int64_t block_rows(const Tiles& tiles, int64_t size, int64_t columns) {
  if (std::max(size, columns) < 48) return size;
  const auto bytes = static_cast<int64_t>(sizeof(T));
  const int64_t rows = tiles.lanes * tiles.packets, each = 4 * (rows + tiles.columns) * bytes;
  const int64_t most = (tiles.cache - rows * tiles.columns * bytes) / each / 8 * 8;
  if (size <= most) return size;
  return size % most == 0 ? most : most - 8 * ((most - 1 - size % most) / (8 * (size / most + 1)));
}

template <class T, bool kOnce>
inline T multiply_add(T a, T b, T c) {
  return kOnce ? std::fma(a, b, c) : a * b + c;
}

// Rows of a matrix that lie `stride` apart.
template <class T>
struct Rows {
  T* at;
  int64_t stride;
  T* operator[](int64_t i) const { return at + i * stride; }
};

// target -= left times right, sums by tiles, or one product after the other.
template <class T, bool kOnce>
class Subtraction {
 public:
  Subtraction(const Rows<const T>& left, const Rows<const T>& right, const Rows<T>& target, int64_t depth, T* sums)
      : left_(left), right_(right), target_(target), depth_(depth), sums_(sums) {}

  void run(int64_t rows, int64_t columns, bool tiled) const {
    constexpr Tiles kTiles = tiles_of<T>(kOnce);
    const int64_t eights = kTiles.columns == 8 ? rows / 8 * 8 : 0, fours = eights + (rows - eights) / 4 * 4;
    const int64_t wide = kTiles.lanes * 2;
    int64_t many = kTiles.packets > 2 ? columns / (wide + kTiles.lanes) * (wide + kTiles.lanes) : 0;
    many += (columns - many) / wide * wide;
    int64_t packets = many + (columns - many) / kTiles.lanes * kTiles.lanes;
    if (kTiles.half > 0) packets += (columns - packets) / kTiles.half * kTiles.half;
    for (int64_t i = 0; i < rows; ++i) {
      if (!tiled || i < eights) {
        alone(i, 0, columns);
      } else if (i < fours) {
        alone(i, 0, many);
        apart(i, many, packets, 2, depth_ / 8 * 8);
        apart(i, packets, columns, 4, kTiles.fours ? depth_ / 4 * 4 : 0);
      } else {
        alone(i, 0, packets);
        kTiles.rest_twice ? alone<false>(i, packets, columns) : alone(i, packets, columns);
      }
    }
  }

 private:
  template <bool kOnceHere = kOnce>
  void chain(int64_t i, int64_t begin, int64_t end, int64_t first, int64_t step, int64_t last, T* sums) const {
    for (int64_t k = first; k < last; k += step) {
      const T factor = left_[i][k];
      const T* other = right_[k];
      for (int64_t j = begin; j < end; ++j) sums[j] = multiply_add<T, kOnceHere>(factor, other[j], sums[j]);
    }
  }
  void finish(int64_t i, int64_t begin, int64_t end) const {
    for (int64_t j = begin; j < end; ++j) target_[i][j] -= sums_[j];
  }
  template <bool kOnceHere = kOnce>
  void alone(int64_t i, int64_t begin, int64_t end) const {
    if (begin >= end) return;
    std::fill(sums_ + begin, sums_ + end, T{0});
    chain<kOnceHere>(i, begin, end, 0, 1, depth_, sums_);
    finish(i, begin, end);
  }
  // `count` sums that take turns up to `whole`, added up by pairs, and the rest behind them.
  void apart(int64_t i, int64_t begin, int64_t end, int64_t count, int64_t whole) const {
    if (begin >= end) return;
    if (whole == 0) return alone(i, begin, end);
    const int64_t width = end - begin;
    T* parts = sums_ + end;
    std::fill(parts, parts + count * width, T{0});
    for (int64_t part = 0; part < count; ++part) {
      chain(i, begin, end, part, count, whole, parts + part * width - begin);
    }
    for (int64_t j = 0; j < width; ++j) {
      T sum = parts[j] + parts[width + j];
      if (count == 4) sum += parts[2 * width + j] + parts[3 * width + j];
      sums_[begin + j] = sum;
    }
    chain(i, begin, end, whole, 1, depth_, sums_);
    finish(i, begin, end);
  }

  Rows<const T> left_, right_;
  Rows<T> target_;
  int64_t depth_;
  T* sums_;
};

// The rows of `x` become those of a triangle's inverse times them; `sums` are five rows of numbers.
template <class T, bool kOnce, bool kLower>
class Triangle {
 public:
  Triangle(const Rows<const T>& m, int64_t size, const Rows<T>& x, int64_t columns, T* sums)
      : m_(m), size_(size), x_(x), columns_(columns), sums_(sums) {}

  template <class Check>
  void solve(const Check& check) const {
    const int64_t rows = block_rows<T>(kTiles, size_, columns_);
    for (int64_t done = 0; done < size_; done += rows) {
      const int64_t count = std::min(rows, size_ - done), begin = kLower ? done : size_ - done - count;
      block(begin, begin + count, check);
      if (kLower) subtract(begin, begin + count, begin + count, size_);
      if (!kLower) subtract(begin, begin + count, 0, begin);
    }
  }

 private:
  static constexpr Tiles kTiles = tiles_of<T>(kOnce);

  template <class Check>
  void block(int64_t begin, int64_t end, const Check& check) const {
    const int64_t panel = kTiles.panel(), panels = (end - begin + panel - 1) / panel;
    for (int64_t number = 0; number < panels; ++number) {
      check();
      const int64_t first = begin + (kLower ? number : panels - 1 - number) * panel;
      const int64_t last = std::min(end, first + panel);
      if (kLower) subtract(begin, first, first, last);
      if (!kLower) subtract(last, end, first, last);
      for (int64_t step = 0; step < last - first; ++step) {
        const int64_t i = kLower ? first + step : last - 1 - step;
        for (int64_t k = kLower ? first : i + 1; k < (kLower ? i : last); ++k) {
          const T factor = -m_[i][k];
          for (int64_t j = 0; j < columns_; ++j) x_[i][j] = multiply_add<T, kOnce>(factor, x_[k][j], x_[i][j]);
        }
        if (kLower) continue;
        const T inverse = T{1} / m_[i][i];
        for (int64_t j = 0; j < columns_; ++j) x_[i][j] *= inverse;
      }
    }
  }
  // What rows give to others, which are those from `first` on.
  void subtract(int64_t begin, int64_t end, int64_t first, int64_t last) const {
    if (begin >= end || first >= last) return;
    const Subtraction<T, kOnce> one({m_[first] + begin, m_.stride}, {x_[begin], x_.stride}, {x_[first], x_.stride},
                                    end - begin, sums_);
    one.run(last - first, columns_, true);
  }

  Rows<const T> m_;
  int64_t size_;
  Rows<T> x_;
  int64_t columns_;
  T* sums_;
};

// Matrices of one size, one after the other: both triangles and the order of rows of each, in memory of its own.
template <class T, bool kOnce>
class Eliminated : public Kernel {
 public:
  explicit Eliminated(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == out.type && in.dense() && out.dense(), "no native kernel for these types");
    require(in.rank() >= 2 && in.shape[in.rank() - 1] == in.shape[in.rank() - 2], "matrices must be square");
    size_ = in.shape.back();
    require(size_ > 0 && in.elements > 0, "there are no matrices");
    matrices_ = in.elements / (size_ * size_);
  }
  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  void run(const Run& run) const override {
    for_rows(run, matrices_, size_ * size_ * size_, [&](int64_t matrix, int worker) {
      uint8_t* scratch = run.scratch + worker * worker_bytes();
      auto* m = reinterpret_cast<T*>(scratch);
      auto* order = reinterpret_cast<int64_t*>(scratch + matrix_bytes());
      auto* sums = reinterpret_cast<T*>(scratch + matrix_bytes() + round_up(size_ * 8, 64));
      std::copy_n(reinterpret_cast<const T*>(run.inputs[0]) + matrix * size_ * size_, size_ * size_, m);
      for (int64_t k = 0; k < size_; ++k) order[k] = k;
      const auto check = [&] { run.check(worker); };
      const T sign = eliminate(m, order, 0, size_, kLargest, sums, check);
      return finish(m, order, sign, matrix, run, sums, check);
    });
  }

 protected:
  using Check = std::function<void()>;
  // The result of a matrix; false where a NaN arose: which pivot is chosen then is the reference's matter.
  virtual bool finish(const T* m, const int64_t* order, T sign, int64_t matrix, const Run& run, T* sums,
                      const Check& check) const = 0;

  int64_t size_ = 0, matrices_ = 0;

 private:
  static constexpr int64_t kLargest = 256, kSmall = 16;

  int64_t matrix_bytes() const { return round_up(size_ * size_ * static_cast<int64_t>(sizeof(T)), 64); }
  int64_t worker_bytes() const {
    return matrix_bytes() + round_up(size_ * 8, 64) + round_up(size_ * 5 * static_cast<int64_t>(sizeof(T)), 64);
  }

  // Columns begin to end, in blocks where they are many; the sign of the exchanges.
  T eliminate(T* m, int64_t* order, int64_t begin, int64_t end, int64_t largest, T* sums, const Check& check) const {
    if (end - begin <= kSmall) return column_by_column(m, order, begin, end, check);
    const int64_t width = std::min(std::max((end - begin) / 8 / 16 * 16, int64_t{8}), largest);
    T sign = 1;
    for (int64_t first = begin; first < end; first += width) {
      const int64_t last = std::min(first + width, end);
      sign *= eliminate(m, order, first, last, kSmall, sums, check);
      if (last == end) break;
      const Rows<T> rows{m, size_};
      const Rows<const T> factors{m + first * size_ + first, size_};
      const Rows<T> upper{rows[first] + last, size_};
      Triangle<T, kOnce, true>(factors, last - first, upper, end - last, sums).solve(check);
      const Subtraction<T, kOnce> rest({rows[last] + first, size_}, {upper.at, size_}, {rows[last] + last, size_},
                                       last - first, sums);
      // Small products are made element by element.
      rest.run(size_ - last, end - last, size_ - last + end - last + last - first >= 20);
    }
    return sign;
  }
  T column_by_column(T* m, int64_t* order, int64_t begin, int64_t end, const Check& check) const {
    T sign = 1;
    for (int64_t k = begin; k < end; ++k) {
      check();
      int64_t pivot = k;
      for (int64_t i = k + 1; i < size_; ++i) {
        if (std::fabs(m[i * size_ + k]) > std::fabs(m[pivot * size_ + k])) pivot = i;
      }
      T* upper = m + k * size_;
      if (pivot != k) {
        sign = -sign;
        std::swap(order[k], order[pivot]);
        std::swap_ranges(upper, upper + size_, m + pivot * size_);
      }
      for (int64_t i = k + 1; i < size_; ++i) {
        T* row = m + i * size_;
        if (upper[k] != 0) row[k] /= upper[k];
        for (int64_t j = k + 1; j < end; ++j) row[j] = multiply_add<T, kOnce>(-row[k], upper[j], row[j]);
      }
    }
    return sign;
  }
};

template <bool kOnce>
class Determinant final : public Eliminated<float, kOnce> {
  using Base = Eliminated<float, kOnce>;

 public:
  explicit Determinant(const Step& step) : Base(step) {
    require(step.output().elements == this->matrices_, "the shapes do not fit");
  }

 private:
  bool finish(const float* m, const int64_t*, float sign, int64_t matrix, const Run& run, float*,
              const typename Base::Check&) const override {
    float product = m[0];
    for (int64_t k = 1; k < this->size_; ++k) product *= m[k * this->size_ + k];
    product *= sign;
    reinterpret_cast<float*>(run.outputs[0])[matrix] = product;
    return product == product;
  }
};

template <class T, bool kOnce>
class Inverse final : public Eliminated<T, kOnce> {
  using Base = Eliminated<T, kOnce>;
  using Base::size_;

 public:
  explicit Inverse(const Step& step) : Base(step) {
    require(step.input(0).elements == step.output().elements, "the shapes do not fit");
  }

 private:
  bool finish(const T* m, const int64_t* order, T, int64_t matrix, const Run& run, T* sums,
              const typename Base::Check& check) const override {
    T* x = reinterpret_cast<T*>(run.outputs[0]) + matrix * size_ * size_;
    for (int64_t i = 0; i < size_; ++i) {
      for (int64_t j = 0; j < size_; ++j) x[i * size_ + j] = order[i] == j ? T{1} : T{0};
    }
    Triangle<T, kOnce, true>({m, size_}, size_, {x, size_}, size_, sums).solve(check);
    Triangle<T, kOnce, false>({m, size_}, size_, {x, size_}, size_, sums).solve(check);
    return std::all_of(x, x + size_ * size_, [](T value) { return value == value; });
  }
};

// Whether products enter sums as they are.
bool is_once(const Step& step) {
  const std::string& rule = step.rule("elimination");
  require(rule == "tiles_of_4_rounded_twice" || rule == "tiles_of_8_rounded_once", "no native rule for this slot");
  return rule == "tiles_of_8_rounded_once";
}

template <class T>
std::unique_ptr<Kernel> make_inverse_of(const Step& step) {
  if (is_once(step)) return std::make_unique<Inverse<T, true>>(step);
  return std::make_unique<Inverse<T, false>>(step);
}

std::unique_ptr<Kernel> make_determinant(const Step& step, const CoreSet&) {
  require_reals(step);
  if (is_once(step)) return std::make_unique<Determinant<true>>(step);
  return std::make_unique<Determinant<false>>(step);
}

std::unique_ptr<Kernel> make_inverse(const Step& step, const CoreSet&) {
  if (step.input(0).type == Type::f32) return make_inverse_of<float>(step);
  require(step.input(0).type == Type::f64, "no native kernel for these types");
  return make_inverse_of<double>(step);
}

BITTRUE_OPERATOR(determinant, make_determinant)
BITTRUE_OPERATOR(inverse, make_inverse)

}  // namespace
}  // namespace bittrue
