// The Python module bittrue._native: scalar C++ twins of the rules, exposed so that tests can hold them against NumPy
// and the exact oracle.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "rules/rescale.h"

namespace nb = nanobind;
using bittrue::rules::kRescale;
using bittrue::rules::Multiplier;
using bittrue::rules::RescaleFunction;
using bittrue::rules::RescaleRow;

namespace {

using Values = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstValues = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
RescaleFunction find_rescale(const std::string& name) {
  for (const RescaleRow& row : kRescale) {
    if (name == row.name) return row.function;
  }
  throw std::invalid_argument("no native rescale rule is called '" + name + "'");
}

void rescale(const std::string& rule, ConstValues acc, int64_t multiplier, int exponent, double factor, Values out) {
  const RescaleFunction function = find_rescale(rule);
  if (acc.shape(0) != out.shape(0)) throw std::invalid_argument("acc and out must have the same length");
  const Multiplier prepared{multiplier, exponent, factor};
  const int64_t* source = acc.data();
  int64_t* target = out.data();
  const size_t count = acc.shape(0);
  nb::gil_scoped_release release;
  for (size_t i = 0; i < count; ++i) target[i] = function(source[i], prepared);
}

}  // namespace

NB_MODULE(_native, module) {
  module.doc() = "C++ twins of bittrue's rules.";
  module.def("rescale", &rescale, nb::arg("rule"), nb::arg("acc"), nb::arg("multiplier"), nb::arg("exponent"),
             nb::arg("factor"), nb::arg("out"),
             "Apply one rescale rule to int64 accumulators; parameters as prepared by bittrue.rules.rescale.");
  nb::list names;
  for (const RescaleRow& row : kRescale) names.append(row.name);
  module.attr("rescale_rules") = nb::tuple(names);
}
