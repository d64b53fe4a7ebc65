// Element-wise products: 16-bit numbers multiplied exactly to 32 bits.
#if !defined(__AVXVNNI__)

#include <algorithm>
#include <cstdlib>

#include "isa/avx2/cores.h"
#include "isa/avx2/vector_elementwise.h"

namespace bittrue::BITTRUE_ISA {
namespace {

struct Products {
  int16_t first_zero_point, second_zero_point;

  void operator()(const uint8_t* first, const uint8_t* second, int64_t count, __m256i offset, int32_t* acc) const {
    const __m256i zero_points[2] = {_mm256_set1_epi16(first_zero_point), _mm256_set1_epi16(second_zero_point)};
    for (int64_t i = 0; i < count; i += 16) {
      const __m256i a = _mm256_sub_epi16(_mm256_cvtepu8_epi16(load16(first + i)), zero_points[0]);
      const __m256i b = _mm256_sub_epi16(_mm256_cvtepu8_epi16(load16(second + i)), zero_points[1]);
      const __m256i low = _mm256_mullo_epi16(a, b), high = _mm256_mulhi_epi16(a, b);
      store32(acc + i, _mm256_add_epi32(_mm256_unpacklo_epi16(low, high), offset));
      store32(acc + i + 8, _mm256_add_epi32(_mm256_unpackhi_epi16(low, high), offset));
    }
  }
};

int64_t farthest(int64_t zero_point) { return std::max(std::abs(zero_point), std::abs(255 - zero_point)); }

}  // namespace

std::unique_ptr<Elementwise> make_mul(const MulSpec& spec) {
  const int64_t greatest = farthest(spec.first_zero_point) * farthest(spec.second_zero_point);
  const Choice choice(spec.requantize, static_cast<double>(greatest));
  const Products products{static_cast<int16_t>(spec.first_zero_point), static_cast<int16_t>(spec.second_zero_point)};
  return std::unique_ptr<Elementwise>(new VectorElementwise<Products>(products, spec.requantize, choice));
}

}  // namespace bittrue::BITTRUE_ISA

#endif
