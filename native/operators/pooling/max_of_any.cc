// Largest integers of windows, tap by tap: 32-bit ones, taps apart, windows that miss the image, up to three axes.
#include <algorithm>
#include <limits>

#include "operators/pooling/pools.h"
#include "operators/pooling/window_axes.h"

namespace bittrue {
namespace {

template <class T>
class MaxOfAny final : public Kernel {
 public:
  explicit MaxOfAny(const Step& step) : w_(step) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == out.type && type_bytes(in.type) == sizeof(T) && step.outputs.size() == 1,
            "no native kernel for these types");
    require(step.rules.count("extreme") == 0, "no native rule for this slot");
    const auto found = step.texts.find("outside");
    edge_ = found != step.texts.end() && found->second == "edge";
    require(edge_ || found == step.texts.end(), "windows beside the image read something else");
    const int64_t flip = flip_of(in.type), least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    low_ = static_cast<T>(step.integer("low", least - flip, most - flip) + flip);
    high_ = static_cast<T>(step.integer("high", least - flip, most - flip) + flip);
  }

  std::string note() const override { return "tap by tap"; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    const int64_t lines = w_.lines(), columns = w_.w().out, channels = w_.inner;
    run.pool.parallel(w_.planes * lines, [&](int64_t task, int worker) {
      const T* plane = in + task / lines * w_.plane();
      const Met d = met(w_.d(), task % lines / w_.h().out), h = met(w_.h(), task % w_.h().out);
      for (int64_t x = 0; x < columns; ++x) {
        run.check(worker);
        const Met w = met(w_.w(), x);
        T* to = out + (task * columns + x) * channels;
        std::fill_n(to, channels, std::numeric_limits<T>::min());
        for (int64_t i = 0; i < d.count; ++i) {
          for (int64_t j = 0; j < h.count; ++j) {
            const T* line = plane + (d.at(i) * w_.h().size + h.at(j)) * w_.w().size * channels;
            for (int64_t k = 0; k < w.count; ++k) {
              const T* pixel = line + w.at(k) * channels;
              for (int64_t c = 0; c < channels; ++c) to[c] = std::max(to[c], pixel[c]);
            }
          }
        }
        for (int64_t c = 0; c < channels; ++c) to[c] = std::min(std::max(to[c], low_), high_);
      }
    });
  }

 private:
  // Taps of a window inside of the image.
  struct Met {
    int64_t begin, step, count;
    int64_t at(int64_t i) const { return begin + i * step; }
  };

  Met met(const WindowAxis& axis, int64_t output) const {
    const int64_t count = axis.inside(output);
    if (count == 0 && edge_) return {axis.place(output, 0) < 0 ? 0 : axis.size - 1, 0, 1};
    return {axis.place(output, axis.first(output)), axis.dilation, count};
  }

  WindowAxes w_;
  bool edge_ = false;
  T low_ = 0, high_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_max_of_any(const Step& step) {
  switch (step.input(0).type) {
    case Type::s8:  // stored unsigned, which keeps the order
    case Type::u8: return std::make_unique<MaxOfAny<uint8_t>>(step);
    case Type::u16: return std::make_unique<MaxOfAny<uint16_t>>(step);
    case Type::s16: return std::make_unique<MaxOfAny<int16_t>>(step);
    case Type::s32: return std::make_unique<MaxOfAny<int32_t>>(step);
    default: return nullptr;
  }
}

}  // namespace bittrue
