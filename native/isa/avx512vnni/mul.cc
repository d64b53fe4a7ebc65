// Element-wise products: 16-bit halves multiplied exactly to 32 bits, then requantized 16 at a time.
#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/intrinsics.h"
#include "isa/avx512vnni/requantize.h"

namespace bittrue::avx512vnni {
namespace {

// 64 products in the order that pack() undoes.
inline void multiply(__m512i a, __m512i b, __m512i first, __m512i second, __m512i (&products)[4]) {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i a_low = _mm512_sub_epi16(_mm512_unpacklo_epi8(a, zero), first);
  const __m512i a_high = _mm512_sub_epi16(_mm512_unpackhi_epi8(a, zero), first);
  const __m512i b_low = _mm512_sub_epi16(_mm512_unpacklo_epi8(b, zero), second);
  const __m512i b_high = _mm512_sub_epi16(_mm512_unpackhi_epi8(b, zero), second);
  const __m512i low = _mm512_mullo_epi16(a_low, b_low), low_top = _mm512_mulhi_epi16(a_low, b_low);
  const __m512i high = _mm512_mullo_epi16(a_high, b_high), high_top = _mm512_mulhi_epi16(a_high, b_high);
  products[0] = _mm512_unpacklo_epi16(low, low_top);
  products[1] = _mm512_unpackhi_epi16(low, low_top);
  products[2] = _mm512_unpacklo_epi16(high, high_top);
  products[3] = _mm512_unpackhi_epi16(high, high_top);
}

class VectorMul final : public Elementwise {
 public:
  VectorMul(const MulSpec& spec, const int64_t* columns, const int64_t* least, const int64_t* greatest)
      : first_(static_cast<int16_t>(spec.first_zero_point)),
        second_(static_cast<int16_t>(spec.second_zero_point)),
        requantizer_(spec.requantize, columns, 16, least, greatest) {}

  void run(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count) const override {
    switch (requantizer_.form()) {
      case Form::product: return rows<Form::product>(a, b, out, count);
      case Form::short_line: return rows<Form::short_line>(a, b, out, count);
      case Form::short_away: return rows<Form::short_away>(a, b, out, count);
      case Form::line: return rows<Form::line>(a, b, out, count);
      case Form::line_away: return rows<Form::line_away>(a, b, out, count);
      case Form::line_by_sign: return rows<Form::line_by_sign>(a, b, out, count);
      default: return rows<Form::scalar>(a, b, out, count);  // by any of the exact forms
    }
  }

 private:
  template <Form form>
  __m512i rescaled(__m512i product, const Line& line) const {
    if constexpr (is_fast(form)) {
      return rescale<form>(product, line);
    } else {
      (void)line;
      return requantizer_.rescale_any(product, 0);
    }
  }

  template <Form form>
  void rows(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count) const {
    const __m512i first = _mm512_set1_epi16(first_), second = _mm512_set1_epi16(second_);
    const Store store = requantizer_.store();
    Line line{};
    if constexpr (is_fast(form)) line = load<form>(requantizer_.lines()[0]);
    for (int64_t i = 0; i < count; i += 64) {
      const __mmask64 mask = count - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (count - i)) - 1;
      __m512i products[4];
      multiply(_mm512_maskz_loadu_epi8(mask, a + i), _mm512_maskz_loadu_epi8(mask, b + i), first, second, products);
      for (auto& product : products) product = rescaled<form>(product, line);
      _mm512_mask_storeu_epi8(out + i, mask, pack<false>(products[0], products[1], products[2], products[3], store));
    }
  }

  int16_t first_, second_;
  Requantizer requantizer_;
};

}  // namespace

std::unique_ptr<Elementwise> make_mul(const MulSpec& spec) {
  // A product is least or greatest at the ends of both operands. Bytes that fill up a vector read 0, which is an end.
  const int64_t a[] = {-spec.first_zero_point, 255 - int64_t{spec.first_zero_point}};
  const int64_t b[] = {-spec.second_zero_point, 255 - int64_t{spec.second_zero_point}};
  int64_t least[16], greatest[16], columns[16];
  for (int lane = 0; lane < 16; ++lane) {
    columns[lane] = 0;
    least[lane] = greatest[lane] = a[0] * b[0];
    for (int k = 1; k < 4; ++k) {
      const int64_t product = a[k / 2] * b[k % 2];
      if (product < least[lane]) least[lane] = product;
      if (product > greatest[lane]) greatest[lane] = product;
    }
  }
  return std::unique_ptr<Elementwise>(new VectorMul(spec, columns, least, greatest));
}

}  // namespace bittrue::avx512vnni
