// discrete_fourier: transforms of signals or of windows of them, every operation rounded to binary32 once: by halves where
// the length is a power of two, else by a convolution with a chirp.
#include <algorithm>
#include <atomic>
#include <vector>

#include "arithmetic/elementary.h"
#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

constexpr int64_t kMostFourier = int64_t{1} << 22;  // numbers of a transform
constexpr float kPi = 3.14159274101257324f;

// Real and imaginary parts, apart.
struct Complexes {
  float *re, *im;
  Complexes from(int64_t i) const { return {re + i, im + i}; }
};

int64_t reversed(int64_t index, int64_t length) {
  int64_t result = 0;
  for (int64_t bit = 1; bit < length; bit *= 2, index /= 2) result = 2 * result + index % 2;
  return result;
}

// (a + bi)(c + di), four products, a difference and a sum.
inline void times(float a, float b, float c, float d, float& re, float& im) {
  const float real = a * c - b * d, imaginary = a * d + b * c;
  re = real, im = imaginary;
}

// Transforms of a length that is a power of two.
class Halves {
 public:
  Halves(int64_t length, bool forward) : length_(length) {
    std::vector<float> re, im;
    const float turn = (forward ? -1.0f : 1.0f) * (2.0f * kPi) / static_cast<float>(length);
    for (int64_t i = 0; i < length; ++i) {
      order_.push_back(reversed(i, length));
      re.push_back(arithmetic::cos(static_cast<float>(i) * turn));
      im.push_back(arithmetic::sin(static_cast<float>(i) * turn));
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
    const float *re = re_.data(), *im = im_.data();
    for (int64_t size = 2; size <= length_; re += size, im += size, size *= 2) {
      for (int64_t block = 0; block < length_; block += size) stage(to.from(block), re, im, size / 2);
    }
    if (!divided) return;
    const auto by = static_cast<float>(length_);
    for (int64_t i = 0; i < length_; ++i) to.re[i] /= by, to.im[i] /= by;
  }

 private:
  static void stage(const Complexes& x, const float* re, const float* im, int64_t middle) {
    for (int64_t j = 0; j < middle; ++j) {
      const float a = x.re[j], b = x.im[j], c = x.re[middle + j], d = x.im[middle + j];
      const float first = re[j] * c - im[j] * d, second = re[j] * d + im[j] * c;
      const float third = re[middle + j] * c - im[middle + j] * d, fourth = re[middle + j] * d + im[middle + j] * c;
      x.re[j] = a + first, x.im[j] = b + second;
      x.re[middle + j] = a + third, x.im[middle + j] = b + fourth;
    }
  }

  int64_t length_;
  std::vector<int64_t> order_;
  std::vector<float> re_, im_;
};

// x times 1, which brings zeros into sums, times a real number.
inline void scale(float& re, float& im, float weight) {
  times(1.0f, 0.0f, re, im, re, im);
  times(re, im, weight, 0.0f, re, im);
}

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
    require(x.type == Type::f32 && out.type == Type::f32 && x.dense() && out.dense() && x.rank() >= 2,
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
    require(!windowed_ || (step.input(1).type == Type::f32 && step.input(1).dense() &&
                           step.input(1).elements == length_ && known_here_ == length_ && !mirrored_),
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
      auto* scratch = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      const int64_t wide = scratch_floats();
      const Complexes signal{scratch, scratch + wide}, other{scratch + 2 * wide, scratch + 3 * wide};
      const auto* window = windowed_ ? reinterpret_cast<const float*>(run.inputs[1]) : nullptr;
      take(reinterpret_cast<const float*>(run.inputs[0]), task, signal);
      const Complexes found = by_chirp_ ? chirped(signal, other, window) : halved(signal, other, window);
      if (!keep(found, task, reinterpret_cast<float*>(run.outputs[0]))) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static int64_t chirp_length(int64_t length) {
    int64_t found = 1;
    while (found < 2 * length - 1) found *= 2;
    return found;
  }
  int64_t transforms() const { return windows_ > 0 ? outer_ * windows_ : outer_ * inner_; }
  int64_t scratch_floats() const { return round_up(std::max({halves_.length(), length_, known_here_}), 16); }
  int64_t worker_bytes() const { return scratch_floats() * 4 * 4; }

  void make_chirp() {
    const int64_t whole = halves_.length();
    std::vector<float> re(static_cast<size_t>(whole)), im(re), turned_re(re), turned_im(re);
    for (int64_t i = 0; i < length_; ++i) {
      const auto place = static_cast<float>(i);
      const float angle = (inverse_ ? 1.0f : -1.0f) * kPi * place * place / static_cast<float>(length_);
      chirp_re_.push_back(arithmetic::cos(angle));
      chirp_im_.push_back(arithmetic::sin(angle));
    }
    for (int64_t i = 0; i < length_; ++i) {
      re[i] = chirp_re_[i], im[i] = -chirp_im_[i];
      if (i > 0) re[whole - i] = chirp_re_[i], im[whole - i] = -chirp_im_[i];
    }
    for (int64_t i = 0; i < whole; ++i) scale(re[i], im[i], 1.0f);
    around_re_.resize(static_cast<size_t>(whole)), around_im_.resize(static_cast<size_t>(whole));
    halves_.run({re.data(), im.data()}, false, {around_re_.data(), around_im_.data()});
  }

  // The numbers of a transform; those of a real signal have no second part.
  void take(const float* x, int64_t task, const Complexes& to) const {
    const int64_t first =
        windows_ > 0 ? task / windows_ * known_ + task % windows_ * step_ : task / inner_ * known_ * inner_;
    const float* from = x + (first + (windows_ > 0 ? 0 : task % inner_)) * parts_;
    const int64_t stride = inner_ * parts_, known = known_here_;
    for (int64_t i = 0; i < known; ++i) to.re[i] = from[i * stride];
    for (int64_t i = 0; i < known; ++i) to.im[i] = parts_ == 2 ? from[i * stride + 1] : 0.0f;
    if (!mirrored_) return;
    std::fill(to.re + known, to.re + length_, 0.0f);
    std::fill(to.im + known, to.im + length_, 0.0f);
    // An even length has a last frequency in the middle.
    const int64_t turned = known - (length_ % 2 == 0 ? 1 : 0);
    for (int64_t i = 1; i < turned; ++i) {
      to.re[length_ - i] = from[i * stride] * 1.0f, to.im[length_ - i] = from[i * stride + 1] * -1.0f;
    }
  }
  int64_t taken() const { return mirrored_ ? length_ : known_here_; }

  Complexes halved(const Complexes& x, const Complexes& to, const float* window) const {
    for (int64_t i = taken(); i < length_; ++i) x.re[i] = x.im[i] = 0.0f;
    for (int64_t i = 0; i < length_; ++i) {
      const float weight = window == nullptr ? 1.0f : window[i];
      if (parts_ == 2) {
        scale(x.re[i], x.im[i], weight);
      } else {
        x.im[i] = 0.0f * x.re[i] * weight;
        x.re[i] = x.re[i] * weight;
      }
    }
    halves_.run(x, inverse_, to);
    return to;
  }

  Complexes chirped(const Complexes& x, const Complexes& to, const float* window) const {
    const int64_t whole = halves_.length(), count = taken();
    for (int64_t i = 0; i < count; ++i) {
      const float weight = window == nullptr ? 1.0f : window[i];
      if (parts_ == 2) {
        times(x.re[i], x.im[i], weight, 0.0f, x.re[i], x.im[i]);
      } else {
        x.re[i] = x.re[i] * weight;
        x.im[i] = 0.0f * weight;
      }
      const float re = i < length_ ? chirp_re_[i] : 0.0f, im = i < length_ ? chirp_im_[i] : 0.0f;
      times(x.re[i], x.im[i], re, im, x.re[i], x.im[i]);
    }
    for (int64_t i = count; i < whole; ++i) x.re[i] = x.im[i] = 0.0f;
    for (int64_t i = 0; i < whole; ++i) scale(x.re[i], x.im[i], 1.0f);
    halves_.run(x, false, to);
    for (int64_t i = 0; i < whole; ++i) {
      times(to.re[i], to.im[i], around_re_[i], around_im_[i], to.re[i], to.im[i]);
      scale(to.re[i], to.im[i], 1.0f);
    }
    halves_.run(to, true, x);
    const float factor = inverse_ ? 1.0f / static_cast<float>(length_) : 1.0f;
    for (int64_t i = 0; i < length_; ++i) {
      const int64_t back = i == 0 ? 0 : whole - i;
      times(x.re[back], x.im[back], chirp_re_[i], chirp_im_[i], to.re[i], to.im[i]);
      to.re[i] *= factor, to.im[i] *= factor;
    }
    return to;
  }

  bool keep(const Complexes& found, int64_t task, float* out) const {
    const int64_t stride = inner_ * kept_;
    float* to = out + (task / inner_ * count_ * inner_ + task % inner_) * kept_;
    for (int64_t i = 0; i < count_; ++i) {
      to[i * stride] = found.re[i];
      if (kept_ == 2) to[i * stride + 1] = found.im[i];
    }
    return all_finite(found.re, count_) && all_finite(found.im, count_);
  }

  int64_t length_, count_, windows_, step_;
  bool inverse_, mirrored_, by_chirp_, windowed_ = false;
  Halves halves_;
  int64_t outer_ = 1, inner_ = 1, known_ = 1, known_here_ = 1, parts_ = 1, kept_ = 2;
  std::vector<float> chirp_re_, chirp_im_, around_re_, around_im_;
};

std::unique_ptr<Kernel> make_discrete_fourier(const Step& step, const CoreSet&) {
  return std::make_unique<DiscreteFourier>(step);
}

BITTRUE_OPERATOR(discrete_fourier, make_discrete_fourier)

}  // namespace
}  // namespace bittrue
