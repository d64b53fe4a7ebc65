// One table of cores per instruction set. Each is defined by the folder of its name, in `table.cc`.
#pragma once

#include "isa/cores.h"

namespace bittrue {
namespace portable {
extern const Cores kCores;
}
#if defined(BITTRUE_X86)
namespace avx2 {
extern const Cores kCores;
}
namespace avxvnni {
extern const Cores kCores;
}
namespace avx512vnni {
extern const Cores kCores;
}
#elif defined(BITTRUE_ARM64)
namespace neon_dotprod {
extern const Cores kCores;
}
#endif
}  // namespace bittrue
