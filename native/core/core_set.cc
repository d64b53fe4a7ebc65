#include "core/core_set.h"

#include <algorithm>
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

// The first set of the chain that has this core; the last one has all.
template <class Member>
auto first_with(const std::vector<const Cores*>& chain, Member member) {
  return (*std::find_if(chain.begin(), chain.end() - 1, [&](const Cores* set) {
           return set->*member != nullptr;
         }))->*member;
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
    const auto add = [&](const char* core, bool has) {
      if (has) result.emplace_back(cores->isa, core);
    };
#define BITTRUE_FACTORY(name, Core, Spec) add(#name, cores->name != nullptr);
#define BITTRUE_FUNCTION(name, Type) add(#name, cores->name != nullptr);
#define BITTRUE_OBJECT(name, Type) add(#name, cores->name != nullptr);
#include "isa/core_list.inc"
  }
  return result;
}

#define BITTRUE_FACTORY(name, Core, Spec) \
  std::unique_ptr<Core> CoreSet::name(const Spec& spec) const { return first_made(chain_, &Cores::name, spec); }
#define BITTRUE_FUNCTION(name, Type) \
  Type CoreSet::name() const { return first_with(chain_, &Cores::name); }
#define BITTRUE_OBJECT(name, Type) \
  const Type& CoreSet::name() const { return *first_with(chain_, &Cores::name); }
#include "isa/core_list.inc"

// Here, so that no set's copy of them can become the one that all use.
Matmul::~Matmul() = default;
int64_t Matmul::scratch() const { return 0; }
Depthwise::~Depthwise() = default;
Elementwise::~Elementwise() = default;

}  // namespace bittrue
