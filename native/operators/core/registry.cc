#include "operators/core/registry.h"

#include <map>

namespace bittrue {

namespace {

// Made on first use: files that register may be initialised before this one.
std::map<std::string, Factory>& factories() {
  static std::map<std::string, Factory> found;
  return found;
}

}  // namespace

Registration::Registration(const char* stem, Factory factory) { factories().emplace(stem, factory); }

Factory find_factory(const std::string& stem) {
  const auto found = factories().find(stem);
  return found == factories().end() ? nullptr : found->second;
}

std::vector<std::string> native_operators() {
  std::vector<std::string> stems;
  for (const auto& [stem, factory] : factories()) stems.push_back(stem);
  return stems;
}

}  // namespace bittrue
