// Options, what is reported, and what every check of a core is given.
#pragma once

#include <cfenv>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/core_set.h"
#include "core/thread_pool.h"
#include "cores_cases.h"

namespace bittrue::test {

struct Options {
  uint64_t seed = 1;
  int64_t scale = 100;
  int threads = 1;
  std::string isa;
};

// What a core may not change: how this thread rounds.
inline unsigned environment() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~_MM_EXCEPT_MASK;
#else
  return static_cast<unsigned>(std::fegetround());
#endif
}

class Report {
 public:
  Report(std::string isa, std::string core) : isa_(std::move(isa)), core_(std::move(core)) {}

  void expect(bool equal, const std::string& description) {
    ++cases_;
    if (environment() != kEnvironment) fail(description + " (changed the rounding mode)");
    if (!equal) fail(description);
  }
  template <class T>
  void expect_equal(const T* ours, const T* expected, int64_t count, const std::string& description) {
    for (int64_t i = 0; i < count; ++i) {
      if (ours[i] == expected[i]) continue;
      expect(false, description + ": element " + std::to_string(i) + " is " + std::to_string(ours[i]) + ", expected " +
                        std::to_string(expected[i]));
      return;
    }
    elements_ += count;
    expect(true, description);
  }
  bool finish() const {
    std::printf("%s %-13s %-15s %6lld cases %10lld elements\n", failed_ ? "FAIL" : "ok  ", isa_.c_str(), core_.c_str(),
                static_cast<long long>(cases_), static_cast<long long>(elements_));
    for (const std::string& line : lines_) std::printf("     %s\n", line.c_str());
    std::fflush(stdout);
    return !failed_;
  }

 private:
  void fail(const std::string& description) {
    failed_ = true;
    if (lines_.size() < 5) lines_.push_back(description);
  }

  static const unsigned kEnvironment;
  std::string isa_, core_;
  std::vector<std::string> lines_;
  int64_t cases_ = 0, elements_ = 0;
  bool failed_ = false;
};

inline const unsigned Report::kEnvironment = environment();

struct Context {
  const CoreSet& cores;
  Options options;
  Random random;
  Report report;

  int64_t rounds(int64_t count) const { return std::max<int64_t>(1, count * options.scale / 100); }
};

// run(k) for k in [0, threads) at the same time.
template <class Run>
void on_threads(int threads, const Run& run) {
  std::vector<std::thread> others;
  for (int k = 1; k < threads; ++k) others.emplace_back([&run, k] { run(k); });
  run(0);
  for (std::thread& thread : others) thread.join();
}

// matmul ----------------------------------------------------------------------------------------------------------

}  // namespace bittrue::test
