// discrete_fourier: transforms of signals or of windows of them, every operation rounded once: by halves where
// the length is a power of two, else by a convolution with a chirp.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "arithmetic/elementary.h"
#include "arithmetic/rational_wide.h"
#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

constexpr int64_t kMostFourier = int64_t{1} << 22;  // numbers of a transform
template <class T>
constexpr T kPi = static_cast<T>(3.14159265358979323846);

float circle_cos(float x) { return arithmetic::cos(x); }
float circle_sin(float x) { return arithmetic::sin(x); }
double circle_cos(double x) { return arithmetic::rational_wide::library_cos(x); }
double circle_sin(double x) { return arithmetic::rational_wide::library_sin(x); }
// Real and imaginary parts, apart.
template <class T>
struct ComplexParts {
  T *re, *im;
  ComplexParts from(int64_t i) const { return {re + i, im + i}; }
};

int64_t reversed(int64_t index, int64_t length) {
  int64_t result = 0;
  for (int64_t bit = 1; bit < length; bit *= 2, index /= 2) result = 2 * result + index % 2;
  return result;
}

// (a + bi)(c + di), four products, a difference and a sum, which the first products may enter as they are.
template <bool kOnce, class T>
inline void times(T a, T b, T c, T d, T& re, T& im) {
  const T second = b * d, third = b * c;
  const T real = kOnce ? std::fma(a, c, -second) : a * c - second;
  const T imaginary = kOnce ? std::fma(a, d, third) : a * d + third;
  re = real, im = imaginary;
}

// Transforms of a length that is a power of two.
template <class T, bool kOnce>
class Halves {
 public:
  using Complexes = ComplexParts<T>;

  Halves(int64_t length, bool forward) : length_(length) {
    std::vector<T> re, im;
    const T turn = (forward ? -T{1} : T{1}) * (T{2} * kPi<T>) / static_cast<T>(length);
    for (int64_t i = 0; i < length; ++i) {
      order_.push_back(reversed(i, length));
      re.push_back(circle_cos(static_cast<T>(i) * turn));
      im.push_back(circle_sin(static_cast<T>(i) * turn));
    }
    // Of every stage: the powers in the order of its results.
    for (int64_t size = 2; size <= length; size *= 2) {
      for (int64_t k = 0; k < size; ++k) {
        const int64_t power = order_[reversed(k, size)];
        re_.push_back(re[power]);
        im_.push_back(im[power]);
      }
    }
  }

  int64_t length() const { return length_; }

  // x in the order of reversed bits becomes `to`, divided by the length when asked to.
  void run(const Complexes& x, bool divided, const Complexes& to) const {
    for (int64_t i = 0; i < length_; ++i) to.re[i] = x.re[order_[i]], to.im[i] = x.im[order_[i]];
    const T *re = re_.data(), *im = im_.data();
    for (int64_t size = 2; size <= length_; re += size, im += size, size *= 2) {
      for (int64_t block = 0; block < length_; block += size) stage(to.from(block), re, im, size / 2);
    }
    if (!divided) return;
    const auto by = static_cast<T>(length_);
    for (int64_t i = 0; i < length_; ++i) to.re[i] /= by, to.im[i] /= by;
  }

 private:
  static void stage(const Complexes& x, const T* re, const T* im, int64_t middle) {
    for (int64_t j = 0; j < middle; ++j) {
      const T a = x.re[j], b = x.im[j], c = x.re[middle + j], d = x.im[middle + j];
      T first, second, third, fourth;
      times<kOnce>(re[j], im[j], c, d, first, second);
      times<kOnce>(c, d, re[middle + j], im[middle + j], third, fourth);
      x.re[j] = a + first, x.im[j] = b + second;
      x.re[middle + j] = a + third, x.im[middle + j] = b + fourth;
    }
  }

  int64_t length_;
  std::vector<int64_t> order_;
  std::vector<T> re_, im_;
};

// x times 1, which brings zeros into sums, times a real number.
template <class T>
inline void scale(T& re, T& im, T weight) {
  times<false>(T{1}, T{0}, re, im, re, im);
  times<false>(re, im, weight, T{0}, re, im);
}

template <class T, bool kOnce>
class DiscreteFourier final : public Kernel {
 public:
  explicit DiscreteFourier(const Step& step)
      : length_(step.integer("length", 1, kMostFourier)),
        count_(step.integer("count", 1, length_)),
        windows_(step.integer("windows", 0, kMostFourier)),
        step_(step.integer("step", 0, kMostFourier)),
        inverse_(step.integer("inverse", 0, 1) != 0),
        mirrored_(inverse_ && step.integer("onesided", 0, 1) != 0),
        by_chirp_((length_ & (length_ - 1)) != 0),
        halves_(by_chirp_ ? chirp_length(length_) : length_, by_chirp_ || !inverse_) {
    const Operand &x = step.input(0), &out = step.output();
    require(x.type == kType && out.type == kType && x.dense() && out.dense() && x.rank() >= 2,
            "no native kernel for these types");
    // Real numbers of which windows are taken may come without an axis of their parts.
    const int last = windows_ > 0 && x.rank() == 2 ? 2 : x.rank() - 1;
    const int64_t axis = step.integer("axis", 0, last - 1);
    parts_ = last < x.rank() ? x.shape[last] : 1, kept_ = mirrored_ ? 1 : 2;
    require(parts_ == 2 || (parts_ == 1 && !mirrored_), "a signal ends in 1 or 2 numbers");
    for (int i = 0; i < last; ++i) (i < axis ? outer_ : i > axis ? inner_ : known_) *= x.shape[i];
    if (windows_ > 0) {
      require(axis == 1 && inner_ == 1 && step_ > 0 && (windows_ - 1) * step_ + length_ <= known_,
              "windows do not fit");
      known_here_ = length_;
    } else {
      known_here_ = known_;
    }
    require(!by_chirp_ || known_here_ <= halves_.length(), "the signal is too long");
    require(out.elements == transforms() * count_ * kept_, "the shapes do not fit");
    require(!mirrored_ || known_here_ <= length_, "there are too many frequencies");
    windowed_ = step.has_input(1);
    require(!windowed_ || (step.input(1).type == kType && step.input(1).dense() && step.input(1).elements == length_ &&
                           known_here_ == length_ && !mirrored_),
            "the window does not fit");
    if (by_chirp_) make_chirp();
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  bool packs(size_t) const override { return false; }
  std::string note() const override { return by_chirp_ ? "by a chirp" : "by halves"; }

  void run(const Run& run) const override {
    std::atomic<bool> finite{true};
    const int64_t work = transforms() * halves_.length() * (by_chirp_ ? 64 : 32);
    run.pool.parallel(transforms(), run.pool.threads_for(work), [&](int64_t task, int worker) {
      auto* scratch = reinterpret_cast<T*>(run.scratch + worker * worker_bytes());
      const int64_t wide = scratch_numbers();
      const Complexes signal{scratch, scratch + wide}, other{scratch + 2 * wide, scratch + 3 * wide};
      const auto* window = windowed_ ? reinterpret_cast<const T*>(run.inputs[1]) : nullptr;
      take(reinterpret_cast<const T*>(run.inputs[0]), task, signal);
      const Complexes found = by_chirp_ ? chirped(signal, other, window) : halved(signal, other, window);
      if (!keep(found, task, reinterpret_cast<T*>(run.outputs[0]))) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  using Complexes = ComplexParts<T>;
  static constexpr Type kType = sizeof(T) == 4 ? Type::f32 : Type::f64;

  static int64_t chirp_length(int64_t length) {
    int64_t found = 1;
    while (found < 2 * length - 1) found *= 2;
    return found;
  }
  int64_t transforms() const { return windows_ > 0 ? outer_ * windows_ : outer_ * inner_; }
  int64_t scratch_numbers() const { return round_up(std::max({halves_.length(), length_, known_here_}), 16); }
  int64_t worker_bytes() const { return scratch_numbers() * 4 * static_cast<int64_t>(sizeof(T)); }

  void make_chirp() {
    const int64_t whole = halves_.length();
    std::vector<T> re(static_cast<size_t>(whole)), im(re), turned_re(re), turned_im(re);
    for (int64_t i = 0; i < length_; ++i) {
      const auto place = static_cast<T>(i);
      const T angle = (inverse_ ? T{1} : -T{1}) * kPi<T> * place * place / static_cast<T>(length_);
      chirp_re_.push_back(circle_cos(angle));
      chirp_im_.push_back(circle_sin(angle));
    }
    for (int64_t i = 0; i < length_; ++i) {
      re[i] = chirp_re_[i], im[i] = -chirp_im_[i];
      if (i > 0) re[whole - i] = chirp_re_[i], im[whole - i] = -chirp_im_[i];
    }
    for (int64_t i = 0; i < whole; ++i) scale(re[i], im[i], T{1});
    around_re_.resize(static_cast<size_t>(whole)), around_im_.resize(static_cast<size_t>(whole));
    halves_.run({re.data(), im.data()}, false, {around_re_.data(), around_im_.data()});
  }

  // The numbers of a transform; those of a real signal have no second part.
  void take(const T* x, int64_t task, const Complexes& to) const {
    const int64_t first =
        windows_ > 0 ? task / windows_ * known_ + task % windows_ * step_ : task / inner_ * known_ * inner_;
    const T* from = x + (first + (windows_ > 0 ? 0 : task % inner_)) * parts_;
    const int64_t stride = inner_ * parts_, known = known_here_;
    for (int64_t i = 0; i < known; ++i) to.re[i] = from[i * stride];
    for (int64_t i = 0; i < known; ++i) to.im[i] = parts_ == 2 ? from[i * stride + 1] : T{0};
    if (!mirrored_) return;
    std::fill(to.re + known, to.re + length_, T{0});
    std::fill(to.im + known, to.im + length_, T{0});
    // An even length has a last frequency in the middle.
    const int64_t turned = known - (length_ % 2 == 0 ? 1 : 0);
    for (int64_t i = 1; i < turned; ++i) {
      to.re[length_ - i] = from[i * stride] * T{1}, to.im[length_ - i] = from[i * stride + 1] * -T{1};
    }
  }
  int64_t taken() const { return mirrored_ ? length_ : known_here_; }

  Complexes halved(const Complexes& x, const Complexes& to, const T* window) const {
    for (int64_t i = taken(); i < length_; ++i) x.re[i] = x.im[i] = T{0};
    for (int64_t i = 0; i < length_; ++i) {
      const T weight = window == nullptr ? T{1} : window[i];
      if (parts_ == 2) {
        scale(x.re[i], x.im[i], weight);
      } else {
        x.im[i] = T{0} * x.re[i] * weight;
        x.re[i] = x.re[i] * weight;
      }
    }
    halves_.run(x, inverse_, to);
    return to;
  }

  Complexes chirped(const Complexes& x, const Complexes& to, const T* window) const {
    const int64_t whole = halves_.length(), count = taken();
    for (int64_t i = 0; i < count; ++i) {
      const T weight = window == nullptr ? T{1} : window[i];
      if (parts_ == 2) {
        times<false>(x.re[i], x.im[i], weight, T{0}, x.re[i], x.im[i]);
      } else {
        x.re[i] = x.re[i] * weight;
        x.im[i] = T{0} * weight;
      }
      const T re = i < length_ ? chirp_re_[i] : T{0}, im = i < length_ ? chirp_im_[i] : T{0};
      times<kOnce>(re, im, x.re[i], x.im[i], x.re[i], x.im[i]);
    }
    for (int64_t i = count; i < whole; ++i) x.re[i] = x.im[i] = T{0};
    for (int64_t i = 0; i < whole; ++i) scale(x.re[i], x.im[i], T{1});
    halves_.run(x, false, to);
    for (int64_t i = 0; i < whole; ++i) {
      times<kOnce>(around_re_[i], around_im_[i], to.re[i], to.im[i], to.re[i], to.im[i]);
      scale(to.re[i], to.im[i], T{1});
    }
    halves_.run(to, true, x);
    // A binary32 number, whatever the type.
    const T factor = inverse_ ? static_cast<T>(1.0f / static_cast<float>(length_)) : T{1};
    for (int64_t i = 0; i < length_; ++i) {
      const int64_t back = i == 0 ? 0 : whole - i;
      times<kOnce>(x.re[back], x.im[back], chirp_re_[i], chirp_im_[i], to.re[i], to.im[i]);
      to.re[i] *= factor, to.im[i] *= factor;
    }
    return to;
  }

  bool keep(const Complexes& found, int64_t task, T* out) const {
    const int64_t stride = inner_ * kept_;
    T* to = out + (task / inner_ * count_ * inner_ + task % inner_) * kept_;
    for (int64_t i = 0; i < count_; ++i) {
      to[i * stride] = found.re[i];
      if (kept_ == 2) to[i * stride + 1] = found.im[i];
    }
    return all_finite(found.re, count_) && all_finite(found.im, count_);
  }

  int64_t length_, count_, windows_, step_;
  bool inverse_, mirrored_, by_chirp_, windowed_ = false;
  Halves<T, kOnce> halves_;
  int64_t outer_ = 1, inner_ = 1, known_ = 1, known_here_ = 1, parts_ = 1, kept_ = 2;
  std::vector<T> chirp_re_, chirp_im_, around_re_, around_im_;
};

template <bool kOnce>
std::unique_ptr<Kernel> make_once(const Step& step) {
  if (step.input(0).type == Type::f64) return std::make_unique<DiscreteFourier<double, kOnce>>(step);
  return std::make_unique<DiscreteFourier<float, kOnce>>(step);
}

std::unique_ptr<Kernel> make_discrete_fourier(const Step& step, const CoreSet&) {
  const std::string& rule = step.rule("multiply_add");
  require(rule == "rounded_twice" || rule == "rounded_once", "no native rule for this slot");
  return rule == "rounded_once" ? make_once<true>(step) : make_once<false>(step);
}

BITTRUE_OPERATOR(discrete_fourier, make_discrete_fourier)

}  // namespace
}  // namespace bittrue
