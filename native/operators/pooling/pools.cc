// max_pool and average_pool: which kernel has the layout and the rules of a step.
#include "operators/pooling/pools.h"

#include "operators/core/registry.h"

namespace bittrue {
namespace {

// Whether windows of integers are something that other kernels do not know.
bool needs_any_average(const Step& step) {
  const Type type = step.input(0).type;
  if (step.rules.count("average") == 0 || !(is_8bit(type) || type == Type::s16 || type == Type::s32)) return false;
  const auto lies_apart = [&](const char* key) { return step.integers.count(key) != 0 && step.integer(key) > 1; };
  return type == Type::s32 || step.input(0).rank() != 4 || step.integer("channels_last", 0, 1) == 0 ||
         step.text("counted") != "inside" || lies_apart("dilation_h") || lies_apart("dilation_w");
}

std::unique_ptr<Kernel> make_max_in_vectors(const Step& step, const CoreSet& cores) {
  if (step.integer("channels_last", 0, 1) != 0) return make_max_of_pixels(step, cores);
  const bool placed = step.outputs.size() > 1 || step.input(0).type == Type::f64;
  return placed ? make_placed_maxima(step) : make_max_of_planes(step, cores);
}

// What `make` does not know, tap by tap.
template <class Make, class MakeAny>
std::unique_ptr<Kernel> make_or_any(const Make& make, const MakeAny& make_any) {
  try {
    if (auto kernel = make()) return kernel;
  } catch (const NoKernel&) {
    // Integers have no order of their own.
  }
  return make_any();
}

std::unique_ptr<Kernel> make_max_pool(const Step& step, const CoreSet& cores) {
  if (step.has_array("rows")) return make_max_over_grid(step);
  const Type type = step.input(0).type;
  if (type == Type::f32 || type == Type::f64 || step.outputs.size() > 1) return make_max_in_vectors(step, cores);
  return make_or_any([&] { return make_max_in_vectors(step, cores); }, [&] { return make_max_of_any(step); });
}

std::unique_ptr<Kernel> make_average_pool(const Step& step, const CoreSet& cores) {
  if (step.rules.count("rescale") || step.rules.count("mean")) return nullptr;  // scales of this run
  if (needs_any_average(step)) return make_average_of_any(step);
  if (step.rules.count("window_levels")) return make_average_of_levels(step);
  if (step.rules.count("affine_average")) return make_affine_average(step);
  if (step.integer("channels_last", 0, 1) == 0 && step.rules.count("window_average") == 0) {
    return step.rules.count("real_sum") ? make_average_of_planes(step, cores) : nullptr;
  }
  if (step.rules.count("real_sum")) return nullptr;
  if (step.rules.count("window_average")) {
    return make_or_any([&] { return make_scaled_average(step, cores); }, [&] { return make_average_of_any(step); });
  }
  return make_average_of_pixels(step, cores);
}

BITTRUE_OPERATOR(average_pool, make_average_pool)
BITTRUE_OPERATOR(max_pool, make_max_pool)

}  // namespace
}  // namespace bittrue
