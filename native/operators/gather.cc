// gather and gather_nd with constant positions: tables of where each slice is read. A position that is computed may lie
// outside of the tensor, which is an error of the run that kernels cannot raise: the reference does those.
#include "core/kernel.h"
#include "operators/strided_copy.h"
#include "operators/table_copy.h"

namespace bittrue {
namespace {

class Gather final : public Kernel {
 public:
  explicit Gather(TableCopy copy) : copy_(std::move(copy)) {}

  void run(const Run& run) const override { copy_.run(run.inputs[0], run.outputs[0], run.pool); }
  bool packs(size_t input) const override { return input == 1; }
  std::string note() const override { return "table of positions"; }

 private:
  TableCopy copy_;
};

std::vector<int64_t> constant_positions(const Step& step) {
  require_same_type(step.input(0), step.output());
  require(step.input(0).dense() && step.output().dense(), "both sides must be dense");
  require(step.input(1).constant != nullptr, "positions are computed at run time");
  return step.input(1).integers();
}

// Product of extents of a tensor with `elements` elements; an extent of 0 hides what the others are.
int64_t checked_product(std::initializer_list<int64_t> extents, int64_t elements) {
  int64_t product = 1;
  for (const int64_t extent : extents) {
    require(extent >= 0 && (extent == 0 || product <= (int64_t{1} << 48) / extent), "impossible extents");
    product *= extent;
  }
  require(product == elements, "the shapes do not fit");
  return product;
}

}  // namespace

std::unique_ptr<Kernel> make_gather(const Step& step, const CoreSet&) {
  const std::vector<int64_t> positions = constant_positions(step);
  const int64_t batch = step.integer("batch"), outer = step.integer("outer"), extent = step.integer("extent"),
                inner = step.integer("inner"), count = step.integer("count");
  checked_product({batch, outer, extent, inner}, step.input(0).elements);
  checked_product({batch, count}, static_cast<int64_t>(positions.size()));
  checked_product({batch, outer, count, inner}, step.output().elements);
  for (const int64_t p : positions) {
    require(p >= 0 && (p < extent || batch * outer == 0), "a position lies outside of the tensor");
  }
  const int64_t chunk = inner * type_bytes(step.output().type);
  if (step.output().elements == 0) return std::make_unique<Gather>(TableCopy({{{}, 0}}, 1));
  if (batch == 1) {
    std::vector<int64_t> table;
    for (const int64_t p : positions) table.push_back(p * chunk);
    return std::make_unique<Gather>(
        TableCopy({{plain_table(outer, extent * chunk), count * chunk}, {std::move(table), chunk}}, chunk));
  }
  std::vector<int64_t> table;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < count; ++k) {
        table.push_back(((b * outer + o) * extent + positions[b * count + k]) * chunk);
      }
    }
  }
  return std::make_unique<Gather>(TableCopy({{std::move(table), chunk}}, chunk));
}

std::unique_ptr<Kernel> make_gather_nd(const Step& step, const CoreSet&) {
  const std::vector<int64_t> positions = constant_positions(step);
  const std::vector<int64_t>& extents = step.list("extents");
  const Operand &in = step.input(0), &out = step.output();
  const size_t depth = extents.size();
  require(depth <= in.shape.size(), "the shapes do not fit");
  int64_t inner = 1;
  for (size_t a = 0; a < in.shape.size(); ++a) {
    if (a < depth) require(in.shape[a] == extents[a], "extents differ");
    if (a >= depth) inner *= in.shape[a];
  }
  // Without coordinates every position is the whole tensor.
  const int64_t slices = depth == 0 ? (inner == 0 ? 0 : out.elements / inner)
                                    : static_cast<int64_t>(positions.size() / depth);
  require(static_cast<size_t>(slices) * depth == positions.size() && slices * inner == out.elements,
          "the shapes do not fit");
  const int64_t chunk = inner * type_bytes(out.type);
  std::vector<int64_t> table(depth == 0 ? static_cast<size_t>(slices) : 0, 0);
  for (size_t i = 0; i < positions.size(); i += depth) {
    int64_t flat = 0;
    for (size_t a = 0; a < depth; ++a) {
      require(positions[i + a] >= 0 && positions[i + a] < extents[a], "a position lies outside of the tensor");
      flat = flat * extents[a] + positions[i + a];
    }
    table.push_back(flat * chunk);
  }
  return std::make_unique<Gather>(TableCopy({{std::move(table), chunk}}, chunk));
}

}  // namespace bittrue
