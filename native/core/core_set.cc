#include "core/core_set.h"

#include <stdexcept>

#include "core/cpu.h"
#include "isa/tables.h"

namespace bittrue {
namespace {

struct IsaRow {
  const Cores* cores;
  bool (*runs_here)();
};

bool always() { return true; }

// The fastest first; each row is completed by the rows below it.
std::vector<IsaRow> isa_rows() {
  std::vector<IsaRow> rows;
#if defined(BITTRUE_X86)
  rows.push_back({&avx512vnni::kCores, cpu_has_avx512vnni});
  rows.push_back({&avxvnni::kCores, cpu_has_avxvnni});
  rows.push_back({&avx2::kCores, cpu_has_avx2});
#elif defined(BITTRUE_ARM64)
  rows.push_back({&neon_dotprod::kCores, cpu_has_neon_dotprod});
#endif
  rows.push_back({&portable::kCores, always});
  return rows;
}

// The first set of the chain that has this core.
template <class Member>
auto first_with(const std::vector<const Cores*>& chain, Member member) {
  for (const Cores* cores : chain) {
    if (cores->*member != nullptr) return cores->*member;
  }
  throw std::logic_error("the portable set lacks a core");
}

// Asks one set after the other until one makes the core.
template <class Member, class Spec>
auto first_made(const std::vector<const Cores*>& chain, Member member, const Spec& spec) {
  for (const Cores* cores : chain) {
    if (cores->*member == nullptr) continue;
    if (auto made = (cores->*member)(spec)) return made;
  }
  throw std::logic_error("the portable set declined a core");
}

}  // namespace

CoreSet::CoreSet(const std::string& isa) {
  for (const IsaRow& row : isa_rows()) {
    // A set that this processor lacks cannot complete a faster one either (AVX-VNNI on most AVX-512 machines).
    if (row.runs_here() && (!chain_.empty() || isa == row.cores->isa)) chain_.push_back(row.cores);
  }
  if (chain_.empty()) throw std::invalid_argument("this processor cannot run instruction set '" + isa + "'");
}

std::vector<std::string> CoreSet::available() {
  std::vector<std::string> names;
  for (const IsaRow& row : isa_rows()) {
    if (row.runs_here()) names.emplace_back(row.cores->isa);
  }
  return names;
}

std::vector<std::string> CoreSet::compiled() {
  std::vector<std::string> names;
  for (const IsaRow& row : isa_rows()) names.emplace_back(row.cores->isa);
  return names;
}

std::vector<std::pair<std::string, std::string>> CoreSet::rows() const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const Cores* cores : chain_) {
#define BITTRUE_CORE(name) \
  if (cores->name != nullptr) result.emplace_back(cores->isa, #name);
#include "isa/core_list.inc"
#undef BITTRUE_CORE
  }
  return result;
}

std::unique_ptr<Matmul> CoreSet::matmul(const MatmulSpec& spec) const {
  return first_made(chain_, &Cores::matmul, spec);
}

std::unique_ptr<Depthwise> CoreSet::depthwise(const DepthwiseSpec& spec) const {
  return first_made(chain_, &Cores::depthwise, spec);
}

std::unique_ptr<Elementwise> CoreSet::add(const AddSpec& spec) const { return first_made(chain_, &Cores::add, spec); }

std::unique_ptr<Elementwise> CoreSet::fused_sum(const FusedSumSpec& spec) const {
  return first_made(chain_, &Cores::fused_sum, spec);
}

std::unique_ptr<Elementwise> CoreSet::mul(const MulSpec& spec) const { return first_made(chain_, &Cores::mul, spec); }

MaxRows CoreSet::max_rows() const { return first_with(chain_, &Cores::max_rows); }
SumRows CoreSet::sum_rows() const { return first_with(chain_, &Cores::sum_rows); }
Lookup CoreSet::lookup() const { return first_with(chain_, &Cores::lookup); }
RequantizeRow CoreSet::requantize_row() const { return first_with(chain_, &Cores::requantize_row); }
RowTerms CoreSet::row_terms() const { return first_with(chain_, &Cores::row_terms); }
const RealMatmul& CoreSet::real_matmul() const { return *first_with(chain_, &Cores::real_matmul); }
const ByteProduct& CoreSet::byte_product() const { return *first_with(chain_, &Cores::byte_product); }
RealTapsFused CoreSet::real_taps_fused() const { return first_with(chain_, &Cores::real_taps_fused); }
RealTaps CoreSet::real_taps() const { return first_with(chain_, &Cores::real_taps); }
QuantizeReals CoreSet::quantize_reals() const { return first_with(chain_, &Cores::quantize_reals); }
RealFunctionCore CoreSet::real_function() const { return first_with(chain_, &Cores::real_function); }
SoftmaxRow CoreSet::softmax_row() const { return first_with(chain_, &Cores::softmax_row); }
NormalizeRow CoreSet::normalize_row() const { return first_with(chain_, &Cores::normalize_row); }
PeakMultiplyAdds CoreSet::peak_multiply_adds() const { return first_with(chain_, &Cores::peak_multiply_adds); }

}  // namespace bittrue
