#include "operators/layers/wrapping_products.h"

#include <algorithm>

#include "operators/layers/tensor_products.h"

namespace bittrue {
namespace {

// T: integers of the operands' width without a sign.
template <class T>
class WrappingProducts final : public Kernel {
 public:
  explicit WrappingProducts(const Step& step) : p_(read_products(step)) {
    const Type type = step.output().type;
    require(step.input(0).type == type && step.input(1).type == type && type_bytes(type) == sizeof(T),
            "no native kernel for these types");
  }
  std::string note() const override { return "sums of integers that wrap"; }

  void run(const Run& run) const override {
    const auto *a = reinterpret_cast<const T*>(run.inputs[0]), *b = reinterpret_cast<const T*>(run.inputs[1]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    const int threads = run.pool.threads_for(p_.work());
    run.pool.parallel(p_.matrices() * p_.rows, threads, [&](int64_t task, int worker) {
      const int64_t matrix = task / p_.rows, row = task % p_.rows;
      const T* left = a + (p_.left[matrix] * p_.rows + row) * p_.depth;
      const T* right = b + p_.right[matrix] * p_.depth * p_.columns;
      T* to = out + task * p_.columns;
      std::fill_n(to, p_.columns, T{0});
      for (int64_t k = 0; k < p_.depth; ++k, right += p_.columns) {
        if (k % 256 == 0) run.check(worker);
        const T factor = left[k];
        for (int64_t n = 0; n < p_.columns; ++n) to[n] += factor * right[n];
      }
    });
  }

 private:
  ProductSizes p_;
};

}  // namespace

std::unique_ptr<Kernel> make_wrapping_products(const Step& step) {
  Step product = step;
  product.integers["transpose_a"] = product.integers["transpose_b"] = {0};
  const Type type = step.output().type;
  require(type == Type::s32 || type == Type::u32 || type == Type::s64 || type == Type::u64,
          "no native kernel for these types");
  if (type_bytes(type) == 4) return std::make_unique<WrappingProducts<uint32_t>>(product);
  return std::make_unique<WrappingProducts<uint64_t>>(product);
}

}  // namespace bittrue
