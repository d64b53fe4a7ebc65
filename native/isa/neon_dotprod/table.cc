// The Arm cores with the dot-product instructions.
#include "isa/tables.h"

namespace bittrue::neon_dotprod {

extern const Cores kCores;
const Cores kCores = {"neon-dotprod"};

}  // namespace bittrue::neon_dotprod
