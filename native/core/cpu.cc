#include "core/cpu.h"

#include <sched.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace bittrue {

#if defined(__x86_64__)

bool cpu_has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool cpu_has_avxvnni() {
  // GCC 12 and Clang 14 do not know the name: CPUID leaf 7, subleaf 1, EAX bit 4. Asked once: virtual machines take
  // microseconds to answer.
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!cpu_has_avx2() || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || a < 1) return false;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
  }();
  return has;
}

bool cpu_has_avx512vnni() {
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

bool cpu_has_neon_dotprod() { return false; }

#else

bool cpu_has_avx2() { return false; }
bool cpu_has_avxvnni() { return false; }
bool cpu_has_avx512vnni() { return false; }

#if defined(__aarch64__) && defined(__linux__)
// HWCAP_ASIMDDP of the Linux user ABI.
bool cpu_has_neon_dotprod() { return (getauxval(AT_HWCAP) & (1ul << 20)) != 0; }
#else
bool cpu_has_neon_dotprod() { return false; }
#endif

#endif

int available_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace bittrue
