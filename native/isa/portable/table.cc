// The portable cores: plain C++, right on every processor; the yardstick of the others.
#include "isa/portable/cores.h"
#include "isa/tables.h"

namespace bittrue::portable {
namespace {

// All of them: what every other set lacks is found here.
constexpr Cores own_cores() {
  Cores cores;
  cores.isa = "portable";
  cores.byte_times = 30;
#define BITTRUE_FACTORY(name, Core, Spec) cores.name = make_##name;
#define BITTRUE_FUNCTION(name, Type) cores.name = name;
#define BITTRUE_OBJECT(name, Type) cores.name = &k##Type;
#include "isa/core_list.inc"
  return cores;
}

}  // namespace

constexpr Cores kCores = own_cores();

}  // namespace bittrue::portable
