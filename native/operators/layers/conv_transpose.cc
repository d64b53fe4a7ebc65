// conv_transpose: 8-bit layers as one matrix product per phase of the output, rows found by pointers.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/share.h"
#include "operators/core/any_type.h"
#include "operators/core/registry.h"
#include "operators/layers/computed_products.h"
#include "operators/layers/exact_products.h"
#include "operators/layers/integer_finish.h"
#include "operators/layers/ordered_convolution.h"
#include "operators/layers/real_transposed.h"
#include "operators/layers/tiled_layer.h"
#include "operators/layers/tiled_product.h"
#include "operators/layers/transposed.h"
#include "operators/layers/weights.h"
#include "operators/layers/whole_layer.h"

namespace bittrue {
namespace {

constexpr int64_t kTransposedRate = 150;  // see CoreSet::byte_rate
// Rows of one task, about: enough of them for a panel of weights in the first-level cache.
constexpr int64_t kTransposedRows = 96;
// Bytes that a segment may be read past its end.
constexpr int64_t kSlack = 64;
// Columns of weights that are worth a pass of their own, about.
constexpr int64_t kPass = 16;

class TransposedConvolution final : public Kernel {
 public:
  TransposedConvolution(const Step& step, const CoreSet& cores, const Transposed& geometry);

  void run(const Run& run) const override;
  int64_t scratch_bytes(int threads) const override { return copy_bytes_ + threads * worker_bytes_; }
  bool packs(size_t input) const override { return input == kTransposedWeights || input == kTransposedBias; }
  std::string note() const override;

 private:
  // Output lines y, y + stride_h, ... and in them `wide` neighbouring columns from x on, x + stride_w on, ... They are
  // the columns of one product: side by side in memory, so that few filters still fill a tile.
  struct Part {
    int64_t y, x, wide;
    Phase down, across;            // what they see of the input, with at least one tap
    int64_t lines, full, partial;  // rows of the product in a line, and columns of one more that ends behind the line
    int64_t lines_at_once;
    std::unique_ptr<Matmul> matmul;
  };

  Phase across(int64_t x, int64_t wide) const;
  Part make_part(int64_t y, int64_t x, int64_t wide) const;
  void pack(const Step& step, const CoreSet& cores, Part& part, const SignedWeights& weights,
            const std::vector<int64_t>& bias, const rules::Requantize& requantize) const;
  void copy_image(const uint8_t* in, uint8_t* copy) const;
  void run_lines(const Part& part, int64_t first, int64_t count, const uint8_t* copy, uint8_t* out,
                 uint8_t* scratch) const;

  int64_t segment(const Part& part) const { return part.across.taps * geometry_.in_c; }
  int64_t capacity(const Part& part) const { return part.full + (part.partial != 0); }
  int64_t list_bytes(const Part& part) const {
    return round_up(part.lines_at_once * part.down.taps * capacity(part) * 8, 64);
  }
  int64_t terms_bytes(const Part& part) const { return round_up(part.lines_at_once * capacity(part) * 4, 64); }

  Transposed geometry_;
  uint8_t in_zero_point_;
  int64_t weight_zero_point_, rate_;
  RowTerms row_terms_;
  std::vector<Part> parts_;
  // The padded copy of one image.
  int64_t above_ = 0, left_ = 0, copy_h_ = 0, copy_w_ = 0;
  int64_t copy_bytes_ = 0, worker_bytes_ = 0;
};

// All that columns [x, x + wide) see: the union of their phases.
Phase TransposedConvolution::across(int64_t x, int64_t wide) const {
  int64_t low = 0, high = 0;
  bool any = false;
  for (int64_t i = x; i < x + wide; ++i) {
    const Phase one = geometry_.horizontal(i);
    if (one.taps == 0) continue;
    low = any ? std::min(low, one.first) : one.first;
    high = any ? std::max(high, one.first + one.taps) : one.first + one.taps;
    any = true;
  }
  return any ? Phase{low, high - low} : Phase{0, 1};
}

TransposedConvolution::Part TransposedConvolution::make_part(int64_t y, int64_t x, int64_t wide) const {
  const Transposed& g = geometry_;
  Part part;
  part.y = y, part.x = x, part.wide = wide;
  part.down = g.vertical(y);
  if (part.down.taps == 0) part.down = {0, 1};
  part.across = across(x, wide);
  part.lines = g.rows(y);
  const int64_t room = g.out_w - x;
  part.full = room < wide ? 0 : (room - wide) / g.stride_w + 1;
  part.partial = std::min(wide - 1, std::max<int64_t>(0, room - part.full * g.stride_w));
  part.lines_at_once =
      std::max<int64_t>(1, std::min(part.lines, kTransposedRows / std::max<int64_t>(1, capacity(part))));
  return part;
}

TransposedConvolution::TransposedConvolution(const Step& step, const CoreSet& cores, const Transposed& geometry)
    : geometry_(geometry),
      in_zero_point_(stored_zero_point(step, kTransposedSource)),
      rate_(cores.byte_rate(kTransposedRate)),
      row_terms_(cores.row_terms()) {
  const Transposed& g = geometry_;
  const SignedWeights weights = signed_weights(step.input(kTransposedWeights), step.integer("weight_zero_point"));
  const std::vector<int64_t> bias = biases(step, kTransposedBias, g.out_c);
  const rules::Requantize requantize = step.requantize(g.out_c);
  weight_zero_point_ = weights.zero_point;
  require(weight_zero_point_ >= -128 && weight_zero_point_ <= 127, "the weights' zero point is out of range");

  // Either all columns of a period in one product, which then meets some zeros, or one product per column.
  const int64_t period = std::min(g.stride_w, g.out_w);
  int64_t apart = 0;
  for (int64_t x = 0; x < period; ++x) apart += round_up(g.out_c, kPass) * across(x, 1).taps;
  const bool together = round_up(period * g.out_c, kPass) * across(0, period).taps <= apart;
  const int64_t high = std::min(g.stride_h, g.out_h);
  require(high * (together ? 1 : period) <= 1024, "there are very many phases");
  int64_t below = 0, right = 0;
  for (int64_t y = 0; y < high; ++y) {
    for (int64_t x = 0; x < period; x += together ? period : 1) {
      Part part = make_part(y, x, together ? period : 1);
      above_ = std::max(above_, -part.down.first);
      left_ = std::max(left_, -part.across.first);
      below = std::max(below, part.lines - 1 + part.down.first + part.down.taps - g.in_h);
      right = std::max(right, capacity(part) - 1 + part.across.first + part.across.taps - g.in_w);
      worker_bytes_ = std::max(worker_bytes_, list_bytes(part) + terms_bytes(part) + round_up(part.wide * g.out_c, 64));
      pack(step, cores, part, weights, bias, requantize);
      parts_.push_back(std::move(part));
    }
  }
  copy_h_ = above_ + g.in_h + below;
  copy_w_ = left_ + g.in_w + right;
  copy_bytes_ = round_up(copy_h_ * copy_w_ * g.in_c + kSlack, 64);
}

// Where a column has no weight for a tap of its product, w = zw stands for none.
void TransposedConvolution::pack(const Step&, const CoreSet& cores, Part& part, const SignedWeights& weights,
                                 const std::vector<int64_t>& bias, const rules::Requantize& requantize) const {
  const Transposed& g = geometry_;
  const int64_t used = segment(part), depth = round_up(used, 4), columns = part.wide * g.out_c;
  require(part.down.taps * depth * columns <= (int64_t{1} << 28), "the filter is very large");
  std::vector<int8_t> packed(static_cast<size_t>(columns * part.down.taps * depth), 0);
  std::vector<int32_t> folded(static_cast<size_t>(columns));
  rules::Requantize finish = requantize;
  if (requantize.multipliers.size() > 1) finish.multipliers.clear();
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t x = part.x + column / g.out_c, filter = column % g.out_c;
    int64_t sum = 0;
    for (int64_t i = 0; i < part.down.taps; ++i) {
      const int64_t u = part.y + g.pad_top - g.stride_h * (part.down.first + i);
      int8_t* target = packed.data() + (column * part.down.taps + i) * depth;
      for (int64_t j = 0; j < part.across.taps; ++j, target += g.in_c) {
        const int64_t v = x + g.pad_left - g.stride_w * (part.across.first + j);
        if (u >= 0 && u < g.filter_h && v >= 0 && v < g.filter_w) {
          const int8_t* from = weights.data + ((filter * g.filter_h + u) * g.filter_w + v) * g.in_c;
          std::memcpy(target, from, static_cast<size_t>(g.in_c));
        } else {
          std::memset(target, static_cast<int>(weight_zero_point_), static_cast<size_t>(g.in_c));
        }
        sum += sum_of(target, g.in_c);
      }
    }
    folded[column] =
        folded_bias(bias[filter], in_zero_point_, zero_point_factor(part.down.taps * used, weight_zero_point_, sum));
    if (requantize.multipliers.size() > 1) finish.multipliers.push_back(requantize.multipliers[filter]);
  }
  MatmulSpec spec;
  spec.columns = columns;
  spec.segments = part.down.taps;
  spec.depth = depth;
  spec.weights = packed.data();
  spec.bias = folded.data();
  spec.row_terms = weight_zero_point_ != 0;
  spec.requantize = std::move(finish);
  part.matmul = cores.matmul(spec);
}

void TransposedConvolution::copy_image(const uint8_t* in, uint8_t* copy) const {
  const int64_t line = copy_w_ * geometry_.in_c, body = geometry_.in_w * geometry_.in_c;
  const int64_t before = left_ * geometry_.in_c;
  for (int64_t y = 0; y < copy_h_; ++y, copy += line) {
    const int64_t from = y - above_;
    if (from < 0 || from >= geometry_.in_h) {
      std::memset(copy, in_zero_point_, static_cast<size_t>(line));
      continue;
    }
    std::memset(copy, in_zero_point_, static_cast<size_t>(before));
    std::memcpy(copy + before, in + from * body, static_cast<size_t>(body));
    std::memset(copy + before + body, in_zero_point_, static_cast<size_t>(line - before - body));
  }
  // The last row is read to the end of its last word.
  std::memset(copy, in_zero_point_, kSlack);
}

// Lines [first, first + count) of a part: every panel of weights meets all of them.
void TransposedConvolution::run_lines(const Part& part, int64_t first, int64_t count, const uint8_t* copy, uint8_t* out,
                                      uint8_t* scratch) const {
  const Transposed& g = geometry_;
  const int64_t rows = capacity(part), taps = part.down.taps, pixel = g.out_c;
  auto* lists = reinterpret_cast<const uint8_t**>(scratch);
  auto* terms = reinterpret_cast<int32_t*>(scratch + list_bytes(part));
  uint8_t* last = scratch + list_bytes(part) + terms_bytes(part);
  for (int64_t k = 0; k < count; ++k) {
    const uint8_t** list = lists + k * taps * rows;
    for (int64_t i = 0; i < taps; ++i) {
      const int64_t y = first + k + part.down.first + i + above_, x = part.across.first + left_;
      const uint8_t* at = copy + (y * copy_w_ + x) * g.in_c;
      for (int64_t r = 0; r < rows; ++r) list[i * rows + r] = at + r * g.in_c;
    }
    if (weight_zero_point_ != 0) {
      row_terms_(list, rows, taps, segment(part), rows, static_cast<int32_t>(-weight_zero_point_), terms + k * rows);
    }
  }
  for (int64_t panel = 0; panel < part.matmul->panels(); ++panel) {
    for (int64_t k = 0; k < count; ++k) {
      MatmulRows each;
      each.rows = lists + k * taps * rows;
      each.capacity = rows;
      each.count = part.full;
      each.row_terms = terms + k * rows;
      each.out = out + ((part.y + (first + k) * g.stride_h) * g.out_w + part.x) * pixel;
      each.out_stride = g.stride_w * pixel;
      if (part.full != 0) part.matmul->run(each, panel, panel + 1);
    }
  }
  for (int64_t k = 0; part.partial != 0 && k < count; ++k) {
    MatmulRows each;
    each.rows = lists + k * taps * rows + part.full;
    each.capacity = rows;
    each.count = 1;
    each.row_terms = terms + k * rows + part.full;
    each.out = last;
    each.out_stride = part.wide * pixel;
    part.matmul->run(each, 0, part.matmul->panels());
    const int64_t x = part.x + part.full * g.stride_w;
    std::memcpy(out + ((part.y + (first + k) * g.stride_h) * g.out_w + x) * pixel, last,
                static_cast<size_t>(part.partial * pixel));
  }
}

void TransposedConvolution::run(const Run& run) const {
  const Transposed& g = geometry_;
  g.check_shape(run);
  const int threads = run.pool.threads_for(g.work() / rate_);
  int64_t blocks = 0;
  for (const Part& part : parts_) blocks += (part.lines + part.lines_at_once - 1) / part.lines_at_once;
  for (int64_t n = 0; n < g.batch; ++n) {
    copy_image(run.inputs[kTransposedSource] + n * g.in_h * g.in_w * g.in_c, run.scratch);
    uint8_t* out = run.outputs[0] + n * g.out_h * g.out_w * g.out_c;
    run.pool.parallel(blocks, threads, [&](int64_t task, int worker) {
      const Part* part = parts_.data();
      for (;; ++part) {
        const int64_t here = (part->lines + part->lines_at_once - 1) / part->lines_at_once;
        if (task < here) break;
        task -= here;
      }
      const int64_t first = task * part->lines_at_once;
      run_lines(*part, first, std::min(part->lines_at_once, part->lines - first), run.scratch, out,
                run.scratch + copy_bytes_ + worker * worker_bytes_);
    });
  }
}

std::string TransposedConvolution::note() const {
  return "matmul, " + std::to_string(parts_.size()) + (parts_.size() == 1 ? " phase" : " phases");
}

}  // namespace

void Transposed::check_shape(const Run& run) const {
  if (!given) return;
  int32_t shape[4];
  std::memcpy(shape, run.inputs[kTransposedShape], sizeof(shape));
  if (shape[0] != batch || shape[1] != out_h || shape[2] != out_w || shape[3] != out_c) throw Undefined();
}

Transposed read_transposed(const Step& step) {
  const bool given = step.has_input(kTransposedShape);
  if (given) {
    const Operand& shape = step.input(kTransposedShape);
    require(shape.type == Type::s32 && shape.elements == 4 && shape.dense(), "a shape has four 32-bit dimensions");
  }
  const Operand& in = step.input(kTransposedSource);
  const Operand& filter = step.input(kTransposedWeights);
  const Operand& out = step.output();
  require(in.rank() == 4 && filter.rank() == 4 && out.rank() == 4, "images and filters have four axes");
  require(in.dense() && out.dense() && filter.dense(), "both sides must be dense");
  constexpr int64_t kMost = 32767;
  Transposed g{};
  g.given = given;
  g.batch = in.shape[0], g.in_h = in.shape[1], g.in_w = in.shape[2], g.in_c = in.shape[3];
  g.filter_h = filter.shape[1], g.filter_w = filter.shape[2];
  require(std::max(g.filter_h, g.filter_w) <= kMost, "the filter is very large");
  const auto pair = [&](const char* key, int64_t least) {
    const std::vector<int64_t>& list = step.list(key);
    require(list.size() == 2, "two spatial axes are needed");
    for (int64_t value : list) require(value >= least && value <= kMost, "a number of the geometry is out of range");
    return list;
  };
  const std::vector<int64_t> strides = pair("strides", 1), before = pair("before", 0), dilations = pair("dilations", 1);
  g.stride_h = strides[0], g.stride_w = strides[1], g.pad_top = before[0], g.pad_left = before[1];
  require(dilations[0] == 1 && dilations[1] == 1, "taps lie apart");
  require(step.integer("groups") == 1 && step.integer("channels_last") == 1, "channels in one group are last");
  require(step.text("filter_layout") == "OSI", "filters lie in another order");
  // As ordinary convolutions would have them.
  require(g.pad_top < g.filter_h && g.pad_left < g.filter_w, "a pad reaches over the filter");
  g.out_h = out.shape[1], g.out_w = out.shape[2], g.out_c = out.shape[3];
  require(out.shape[0] == g.batch, "the output's shape differs");
  require(in.elements > 0 && out.elements > 0 && filter.elements > 0, "there is nothing to do");
  require(g.out_h <= g.in_h * g.stride_h + g.filter_h && g.out_w <= g.in_w * g.stride_w + g.filter_w,
          "the output is larger than the input reaches");
  require(filter.shape[0] == g.out_c && filter.shape[3] == g.in_c, "the filter's shape differs");
  return g;
}

namespace {

// Sums of integers: a product of every position with all filters and taps, whose numbers are added where
// the taps reach. They are kept in 32 bits, or in 16.
class TransposedSums final : public Kernel {
 public:
  TransposedSums(const Step& step, const CoreSet& cores) {
    const Operand &in = step.input(0), &filter = step.input(1), &out = step.output();
    require(is_integer(in.type) && (out.type == Type::s32 || out.type == Type::s16) && in.dense() && filter.dense() &&
                out.dense(),
            "no native kernel for these types");
    const int rank = in.rank();
    require(rank >= 3 && rank <= 5 && filter.rank() == rank && out.rank() == rank,
            "one to three spatial axes are needed");
    require(in.elements > 0 && filter.elements > 0 && out.elements > 0, "there is nothing to do");
    const bool last = step.integer("channels_last", 0, 1) != 0;
    const size_t channel = last ? static_cast<size_t>(rank) - 1 : 1, first = last ? 1 : 2;
    const int64_t channels = in.shape[channel];
    groups_ = step.integer("groups", 1, channels);
    filters_ = filter.shape[1];
    require(channels % groups_ == 0 && filter.shape[0] == channels && out.shape[channel] == groups_ * filters_ &&
                out.shape[0] == in.shape[0],
            "channels do not split into groups");
    const size_t axes = static_cast<size_t>(rank) - 2;
    const auto number = [&](const char* key, size_t axis, int64_t least) {
      const std::vector<int64_t>& list = step.list(key);
      require(list.size() == axes && list[axis] >= least && list[axis] <= int64_t{1} << 31,
              "the geometry does not fit");
      return list[axis];
    };
    for (size_t i = 0; i < axes; ++i) {
      Axis& axis = axes_[i + 3 - axes];
      axis = {in.shape[i + first],     out.shape[i + first],      filter.shape[i + 2],
              number("strides", i, 1), number("dilations", i, 1), number("before", i, -(int64_t{1} << 31))};
      taps_ *= axis.taps;
      positions_ *= axis.size;
      reached_ *= axis.out;
    }
    const int64_t columns = filters_ * taps_;
    ProductSizes p{positions_, channels / groups_, columns, !last, false, in.shape[0] * groups_, groups_, {}, {}};
    require(p.left_matrices * positions_ <= (int64_t{1} << 28) / columns, "the products are very large");
    for (int64_t i = 0; i < p.left_matrices; ++i) {
      p.left.push_back(i);
      p.right.push_back(i % groups_);
    }
    planes_ = p.left_matrices * filters_;
    apart_ = last ? groups_ * filters_ : 1;
    narrow_ = out.type == Type::s16;
    if (last && groups_ > 1) group_bytes_ = channels / groups_ * type_bytes(in.type);
    make_products(step, cores, p);
  }

  int64_t scratch_bytes(int threads) const override {
    return product_bytes() + image_bytes() + products_->scratch_bytes(threads);
  }
  bool packs(size_t input) const override {
    return late_ && is_point(input) ? false : input > 1 || products_->packs(input);
  }
  std::string note() const override { return products_->note() + ", added where taps reach"; }

  void run(const Run& run) const override {
    std::array<uint8_t*, kPoints[1] + 1> inputs{run.inputs[0], run.inputs[1]};
    for (const size_t i : kPoints) inputs[i] = run.inputs[i];
    uint8_t *products = run.scratch, *images = products + product_bytes();
    if (group_bytes_ != 0) {
      gather(run, images);
      inputs[0] = images;
    }
    products_->run({inputs.data(), &products, images + image_bytes(), run.pool});
    run.pool.parallel(planes_, [&](int64_t plane, int) {
      const int64_t matrix = plane / filters_, filter = plane % filters_;
      const auto* from = reinterpret_cast<const int32_t*>(products) + (matrix * positions_ * filters_ + filter) * taps_;
      const int64_t place =
          apart_ == 1 ? plane * reached_ : matrix / groups_ * reached_ * apart_ + matrix % groups_ * filters_ + filter;
      if (narrow_) {
        add_taps(from, reinterpret_cast<int16_t*>(run.outputs[0]) + place);
      } else {
        add_taps(from, reinterpret_cast<int32_t*>(run.outputs[0]) + place);
      }
    });
  }

 private:
  struct Axis {
    int64_t size = 1, out = 1, taps = 1, stride = 1, dilation = 1, before = 0;

    // Where a tap at a position reaches to; negative outside of the output.
    int64_t place(int64_t position, int64_t tap) const {
      const int64_t at = position * stride + tap * dilation - before;
      return at < out ? at : -1;
    }
  };

  // Operands that are the zero points of the image and of the filters.
  static constexpr size_t kPoints[] = {ProductOperands::kRowPoint, ProductOperands::kColumnPoints};

  static bool is_point(size_t input) { return input == kPoints[0] || input == kPoints[1]; }

  // Products of bytes whose differences fit 16 bits, or of numbers of up to 16 bits with differences modulo 2^16.
  void make_products(const Step& step, const CoreSet& cores, const ProductSizes& p) {
    Step product = step;
    Operand sums = step.output();
    sums.type = Type::s32;
    sums.shape = {p.matrices(), p.rows, p.columns};
    sums.elements = p.matrices() * p.rows * p.columns;
    sums.row_stride = sums.row_bytes();
    product.outputs = {&sums};
    product.rules = {{"accumulate", "s32_wrap"}};
    product.inputs = {step.inputs[0], step.inputs[1], nullptr, nullptr, nullptr, nullptr, nullptr};
    for (const size_t i : kPoints) product.inputs[i] = &step.input(i);
    const Operand &image = step.input(kPoints[0]), &filters = step.input(kPoints[1]);
    late_ = image.constant == nullptr || filters.constant == nullptr;
    product.integers["late"] = {late_};
    require(image.elements == 1 && (filters.elements == 1 || (filters.elements == filters_ && !late_)),
            "one zero point is needed");
    bool near = is_8bit(step.input(0).type) && is_8bit(step.input(1).type);
    std::vector<int64_t> spread;
    if (!late_) {
      const auto is_near = [](int64_t point) { return point >= -32512 && point <= 32512; };
      const int64_t point = image.integers()[0];
      const std::vector<int64_t> own = filters.integers();
      near = near && is_near(point) && std::all_of(own.begin(), own.end(), is_near);
      product.integers["input_zero_point"] = {point};
      // A filter's zero point stands for all of its taps.
      for (int64_t n = 0; n < p.columns; ++n)
        spread.push_back(own[own.size() == 1 ? 0 : static_cast<size_t>(n / taps_)]);
      product.arrays["weight_zero_points"] = {Type::s64, {p.columns}, spread.data(), p.columns};
    }
    if (near) {
      products_ = make_computed_products(product, cores, p);
    } else {
      product.rules["center"] = "s16_wrap";
      products_ = make_exact_products(product, cores, p);
    }
  }

  int64_t image_bytes() const { return round_up(planes_ / filters_ * positions_ * group_bytes_, 64); }

  // The channels of every image's groups apart from those of the others.
  void gather(const Run& run, uint8_t* to) const {
    run.pool.parallel(planes_ / filters_, [&](int64_t matrix, int) {
      const uint8_t* from = run.inputs[0] + (matrix / groups_ * positions_ * groups_ + matrix % groups_) * group_bytes_;
      uint8_t* target = to + matrix * positions_ * group_bytes_;
      for (int64_t i = 0; i < positions_; ++i) {
        std::memcpy(target + i * group_bytes_, from + i * groups_ * group_bytes_, static_cast<size_t>(group_bytes_));
      }
    });
  }

  int64_t product_bytes() const { return round_up(planes_ * positions_ * taps_ * 4, 64); }

  template <class T>
  void add_taps(const int32_t* from, T* out) const {
    for (int64_t i = 0; i < reached_; ++i) out[i * apart_] = 0;
    const Axis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    const int64_t step = filters_ * taps_;
    for (int64_t z = 0; z < d.size; ++z) {
      for (int64_t y = 0; y < h.size; ++y) {
        const int32_t* line = from + (z * h.size + y) * w.size * step;
        for (int64_t t = 0; t < d.taps * h.taps; ++t) {
          const int64_t to_z = d.place(z, t / h.taps), to_y = h.place(y, t % h.taps);
          if (to_z < 0 || to_y < 0) continue;
          T* target = out + (to_z * h.out + to_y) * w.out * apart_;
          for (int64_t k = 0; k < w.taps; ++k) {
            const int32_t* products = line + t * w.taps + k;
            for (int64_t x = 0; x < w.size; ++x) {
              const int64_t at = w.place(x, k), to = at * apart_;
              if (at < 0) continue;
              target[to] =
                  static_cast<T>(static_cast<uint32_t>(target[to]) + static_cast<uint32_t>(products[x * step]));
            }
          }
        }
      }
    }
  }

  std::array<Axis, 3> axes_;
  int64_t filters_ = 0, groups_ = 1, taps_ = 1, positions_ = 1, reached_ = 1, planes_ = 0;
  int64_t apart_ = 1;        // numbers of the output from one position to the next
  int64_t group_bytes_ = 0;  // of a group's channels at a position, where they lie between those of others
  bool narrow_ = false, late_ = false;
  std::unique_ptr<Kernel> products_;
};

}  // namespace

static std::unique_ptr<Kernel> make_conv_transpose(const Step& step, const CoreSet& cores) {
  const std::string& arithmetic = step.text("arithmetic");
  if (arithmetic == "whole") return make_whole_layer(step, cores);
  if (step.rules.count("real_product") != 0) {
    require(step.rule("real_product") == "binary32_fused_blocks", "no native rule for this slot");
    return make_real_transposed(step, cores);
  }
  if (arithmetic == "integers") return std::make_unique<TransposedSums>(step, cores);
  const bool integers = arithmetic == "rescaled", ordered = arithmetic == "ordered";
  if (!integers && !ordered && arithmetic != "hybrid") throw NoKernel("no native kernel for this arithmetic");
  if (TiledProduct::suits(step)) return make_tiled_transposed(step, cores);
  if (ordered) return make_ordered_transposed(step, cores);
  const Transposed geometry = read_transposed(step);
  if (!integers || !suits_matmul(step, kTransposedSource, kTransposedBias)) {
    return make_general_transposed(step, cores, geometry);
  }
  return std::make_unique<TransposedConvolution>(step, cores, geometry);
}

BITTRUE_OPERATOR(conv_transpose, make_conv_transpose)

}  // namespace bittrue
