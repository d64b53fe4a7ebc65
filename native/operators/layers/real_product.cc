// matmul of real numbers by the rules binary32_fused_blocks, binary32_fused_blocks_alike and binary64_fused_blocks: blocks of
// fused multiply-adds from 0 on, added up.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/layers/fused_product.h"
#include "operators/layers/real_product.h"
#include "operators/layers/single_rows.h"
#include "operators/layers/tensor_products.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

constexpr int64_t kLargeMatrix = 1 << 20;  // numbers beyond those that a second cache holds

// Which matrices meet, all of one shape on each side.
struct Factors {
  int64_t rows = 0, depth = 0, columns = 0;
  int64_t turned_rows = 0;           // of matrices a that are [depth][turned_rows]; 0: a is [rows][depth]
  bool turned_b = false;             // b is [columns][depth]
  std::vector<int64_t> left, right;  // matrix of each side, per matrix of the result
  int64_t right_matrices = 1;
};

template <class T>
void require_real_operands(const Operand& a, const Operand& b, const Operand& out) {
  constexpr Type kReal = std::is_same_v<T, float> ? Type::f32 : Type::f64;
  const bool real = a.type == kReal && b.type == kReal && out.type == kReal;
  require(real && a.dense() && b.dense() && out.dense(), "no native kernel for these types");
}

template <class T>
class RealProduct final : public Kernel {
 public:
  RealProduct(const Step& step, const MatmulOf<T>& core, const Factors& factors, bool added, int64_t block)
      : f_(factors), product_(core, f_.depth, f_.columns, static_cast<T>(step.real("alpha")), block) {
    const Operand &a = step.input(0), &b = step.input(1), &out = step.output();
    require_real_operands<T>(a, b, out);
    require(f_.rows > 0 && f_.depth > 0 && f_.columns > 0, "there is nothing to do");
    turned_numbers_ = f_.turned_rows == 0 ? 0 : a.elements;
    if (added) {
      const Operand& c = step.input(2);
      require(c.type == a.type && c.dense() && c.rank() <= 2, "the addend has another form");
      const int64_t across = c.rank() > 0 ? c.shape.back() : 1, down = c.rank() > 1 ? c.shape[0] : 1;
      require((across == 1 || across == f_.columns) && (down == 1 || down == f_.rows), "the addend has another form");
      added_ = true;
      beta_ = static_cast<T>(step.real("beta"));
      if (beta_ != T{1}) scaled_ = c.elements;
      addend_.across = across == 1 ? 0 : 1;
      addend_.down = down == 1 ? 0 : across;
    }
    if (b.constant != nullptr) {
      constant_ = true;
      std::vector<T> values(static_cast<size_t>(b.elements));
      std::memcpy(values.data(), b.constant, values.size() * sizeof(T));
      kept_.resize(static_cast<size_t>(f_.right_matrices * product_.matrix_numbers()));
      for (int64_t i = 0; i < f_.right_matrices; ++i) {
        for (int64_t p = 0; p < product_.panels(); ++p) pack(values.data(), i, p, kept_.data());
      }
    }
  }

  int64_t scratch_bytes(int threads) const override {
    return packed_bytes() + turned_bytes() + scaled_bytes() + threads * product_.worker_bytes();
  }
  bool tells_nan() const override { return true; }
  bool packs(size_t input) const override { return input == 1 && constant_; }
  std::string note() const override { return "fused multiply-adds in blocks"; }

  void run(const Run& run) const override {
    const auto* a = reinterpret_cast<const T*>(run.inputs[0]);
    const auto* c = added_ ? reinterpret_cast<const T*>(run.inputs[2]) : nullptr;
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    const int64_t panels = product_.panels();
    const T* packed = kept_.data();
    if (!constant_) {
      auto* target = reinterpret_cast<T*>(run.scratch);
      run.pool.parallel(f_.right_matrices * panels, [&](int64_t task, int) {
        pack(reinterpret_cast<const T*>(run.inputs[1]), task / panels, task % panels, target);
      });
      packed = target;
    }
    if (turned_numbers_ != 0) a = turn(a, reinterpret_cast<T*>(run.scratch + packed_bytes()), run.pool);
    if (scaled_ != 0) {
      auto* target = reinterpret_cast<T*>(run.scratch + packed_bytes() + turned_bytes());
      for (int64_t i = 0; i < scaled_; ++i) target[i] = c[i] * beta_;
      c = target;
    }
    const int64_t some = f_.depth * f_.columns > kLargeMatrix ? FusedProduct::kMostRows : FusedProduct::kRows;
    const int64_t blocks = (f_.rows + some - 1) / some, matrices = static_cast<int64_t>(f_.left.size());
    // Few rows are shared out by columns.
    const bool by_panels = matrices * blocks < 2 * run.pool.threads() || some * f_.columns * f_.depth > kTaskMostWork;
    const int64_t parts = by_panels ? panels : 1;
    const bool small = matrices * f_.rows * f_.columns * f_.depth < 50000;
    std::atomic<bool> finite{true};
    run.pool.parallel(matrices * blocks * parts, small ? 1 : run.pool.threads(), [&](int64_t task, int worker) {
      const int64_t part = task % parts, block = task / parts % blocks, matrix = task / parts / blocks;
      const int64_t first = block * some, count = std::min(some, f_.rows - first);
      uint8_t* scratch =
          run.scratch + packed_bytes() + turned_bytes() + scaled_bytes() + worker * product_.worker_bytes();
      AddendOf<T> addend = addend_;
      addend.from = c == nullptr ? nullptr : c + first * addend_.down;
      for (int64_t p = by_panels ? part : 0; p < (by_panels ? part + 1 : panels); ++p) {
        const bool right = product_.multiply(a + (f_.left[matrix] * f_.rows + first) * f_.depth, count,
                                             packed + f_.right[matrix] * product_.matrix_numbers(), p, addend,
                                             out + (matrix * f_.rows + first) * f_.columns, f_.columns, scratch);
        if (!right) finite.store(false, std::memory_order_relaxed);
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  int64_t packed_bytes() const {
    return constant_ ? 0
                     : round_up(f_.right_matrices * product_.matrix_numbers() * static_cast<int64_t>(sizeof(T)), 64);
  }

  int64_t turned_bytes() const { return round_up(turned_numbers_ * static_cast<int64_t>(sizeof(T)), 64); }
  int64_t scaled_bytes() const { return round_up(scaled_ * static_cast<int64_t>(sizeof(T)), 64); }

  // The rows of all matrices on the left side by side.
  const T* turn(const T* from, T* to, ThreadPool& pool) const {
    const int64_t rows = f_.turned_rows, parts = (rows + FusedProduct::kRows - 1) / FusedProduct::kRows;
    pool.parallel(turned_numbers_ / (rows * f_.depth) * parts, [&](int64_t task, int) {
      const int64_t first = task % parts * FusedProduct::kRows, matrix = task / parts * rows * f_.depth;
      const int64_t count = std::min(FusedProduct::kRows, rows - first);
      const T* source = from + matrix + first;
      T* target = to + matrix + first * f_.depth;
      if constexpr (std::is_same_v<T, float>) {
        transpose_numbers(source, rows, target, f_.depth, count, f_.depth);
      } else {
        for (int64_t r = 0; r < count; ++r) {
          for (int64_t k = 0; k < f_.depth; ++k) *target++ = source[k * rows + r];
        }
      }
    });
    return to;
  }

  void pack(const T* from, int64_t i, int64_t p, T* packed) const {
    product_.pack(from + i * f_.depth * f_.columns, f_.turned_b, p, packed + i * product_.matrix_numbers());
  }

  Factors f_;
  FusedProductOf<T> product_;
  AddendOf<T> addend_;
  bool added_ = false, constant_ = false;
  T beta_ = 1;
  int64_t scaled_ = 0;          // numbers of an addend that has a factor
  int64_t turned_numbers_ = 0;  // of operands a whose rows are laid side by side first
  std::vector<T> kept_;
};

// A single row, or a single column whose numbers are side by side, of a matrix that is not packed.
class SingleRows final : public Kernel {
 public:
  SingleRows(const Step& step, const Factors& factors, bool added) : f_(factors), added_(added) {
    const Operand &a = step.input(0), &b = step.input(1), &out = step.output();
    require_real_operands<float>(a, b, out);
    require(f_.rows > 0 && f_.depth > 0 && f_.columns > 0, "there is nothing to do");
    if (!added) return;
    const Operand& c = step.input(2);
    require(c.type == Type::f32 && c.dense() && (c.elements == 1 || c.elements == f_.rows * f_.columns),
            "the addend has another form");
    one_addend_ = c.elements == 1;
  }
  bool tells_nan() const override { return true; }
  bool packs(size_t) const override { return false; }
  std::string note() const override { return "products and sums of single rows"; }

  void run(const Run& run) const override {
    const auto* c = added_ ? reinterpret_cast<const float*>(run.inputs[2]) : nullptr;
    const int64_t results = f_.rows * f_.columns;
    bool finite = true;
    for (size_t i = 0; i < f_.left.size(); ++i) {
      const float* a = reinterpret_cast<const float*>(run.inputs[0]) + f_.left[i] * f_.rows * f_.depth;
      const float* b = reinterpret_cast<const float*>(run.inputs[1]) + f_.right[i] * f_.depth * f_.columns;
      float* out = reinterpret_cast<float*>(run.outputs[0]) + static_cast<int64_t>(i) * results;
      const auto begin = [&](int64_t n) { return c == nullptr ? 0.0f : c[one_addend_ ? 0 : n]; };
      if (f_.rows == 1 && !f_.turned_b) {
        for (int64_t n = 0; n < results; ++n) out[n] = begin(n);
        add_fours(a, b, f_.columns, f_.depth, f_.columns, out);
      } else {
        // Rows that meet one column: those of b, or those of a.
        const float *rows = f_.rows == 1 ? b : a, *column = f_.rows == 1 ? a : b;
        sums_of_lanes_of_eight(rows, column, f_.depth, results, out);
        for (int64_t n = 0; n < results; ++n) out[n] = out[n] + begin(n);
      }
      finite &= all_finite(out, results);
    }
    if (!finite) throw Undefined();
  }

 private:
  Factors f_;
  bool added_, one_addend_ = false;
};

// Whether a rewrite says so of an operand.
bool is_marked(const Step& step, const char* name) {
  const auto found = step.integers.find(name);
  return found != step.integers.end() && step.integer(name, 0, 1) != 0;
}

std::unique_ptr<Kernel> make_product(const Step& step, const CoreSet& cores, const Factors& factors, bool added) {
  const bool turned_a = is_marked(step, "turned_a");
  const std::string& rule = step.rule("real_product");
  if (rule == "binary64_fused_blocks") {
    using Wide = FusedProductOf<double>;
    const int64_t block = turned_a ? Wide::kTurnedBlock : Wide::block_of(factors.depth, factors.columns, false);
    return std::make_unique<RealProduct<double>>(step, cores.wide_matmul(), factors, added, block);
  }
  const RealMatmul& core = cores.real_matmul();
  const bool turned = is_marked(step, "turned_b");
  const bool packed = step.integer("packed", 0, 1) != 0 && step.input(1).rank() == 2;
  const bool alike = rule == "binary32_fused_blocks_alike",
             plain = !packed && step.real("alpha") == 1.0 && (!added || step.real("beta") == 1.0);
  require(alike || rule == "binary32_fused_blocks", "no native rule for this slot");
  if (turned_a) {
    // Where single columns have a way of their own, it asks for rows.
    require(alike || !plain || turned || factors.columns > 1, "the runtime's rows are not side by side");
    return std::make_unique<RealProduct<float>>(
        step, core, factors, added,
        packed ? FusedProduct::block_of(factors.depth, factors.columns, true) : FusedProduct::kTurnedBlock);
  }
  require(factors.turned_rows == 0, "rows are not side by side");
  if (alike && plain && factors.rows == 1 && !turned) {
    require(!added, "a single row's sum begins with what is added");
    return std::make_unique<RealProduct<float>>(step, core, factors, added, factors.depth);
  }
  const bool single = factors.rows == 1 || (factors.columns == 1 && !turned);
  if (single && plain && !alike) {
    require(turned == factors.turned_b, "the runtime's columns are not side by side");
    return std::make_unique<SingleRows>(step, factors, added);
  }
  return std::make_unique<RealProduct<float>>(step, core, factors, added,
                                              FusedProduct::block_of(factors.depth, factors.columns, packed));
}

}  // namespace

std::unique_ptr<Kernel> make_real_product(const Step& step, const CoreSet& cores) {
  const Operand &a = step.input(0), &b = step.input(1);
  require(a.rank() >= 1 && b.rank() >= 1, "numbers are no matrices");
  const bool turned = step.integer("transpose_a", 0, 1) != 0;
  const auto groups = step.integers.find("groups");
  require(groups == step.integers.end() || groups->second.empty(), "columns of heads are multiplied apart");
  const bool added = step.has_input(2) && step.real("beta") != 0.0;
  const bool by_row = !added || a.rank() == 2 || (step.input(2).rank() <= 1 && b.rank() == 2);
  require(!added || (by_row && b.rank() == 2), "no native form for this addend");
  Factors f;
  const bool vector = b.rank() == 1;
  require(!vector || !(turned || is_marked(step, "turned_a")), "rows are not side by side");
  if (turned) f.turned_rows = a.shape.back();
  f.turned_b = step.integer("transpose_b", 0, 1) != 0;
  f.depth = a.shape[a.rank() - (turned ? 2 : 1)];
  f.columns = vector ? 1 : b.shape[b.rank() - (f.turned_b ? 2 : 1)];
  require(b.shape[b.rank() - (vector || f.turned_b ? 1 : 2)] == f.depth && f.depth > 0 && f.columns > 0,
          "the shapes do not fit");
  f.right_matrices = b.elements / (f.depth * f.columns);
  require(step.integer("apart", 0, 1) == 0, "matrices on the left lie apart");
  if (vector) {
    // Every row is a matrix of its own.
    require(a.elements / f.depth <= (int64_t{1} << 20), "there are very many rows");
    f.rows = 1;
    f.left.resize(static_cast<size_t>(a.elements / f.depth));
    std::iota(f.left.begin(), f.left.end(), 0);
    f.right.assign(f.left.size(), 0);
  } else if (f.right_matrices == 1 && b.rank() <= std::max(a.rank(), 2)) {
    // Matrices on the left that meet a single one are one matrix.
    f.rows = a.elements / f.depth;
    f.left = f.right = {0};
  } else {
    const Operand& out = step.output();
    require(a.rank() >= 2 && out.rank() == std::max(a.rank(), b.rank()), "ranks differ");
    require(matrices_of(out) <= (int64_t{1} << 20), "there are very many matrices");
    f.rows = a.shape[a.rank() - (turned ? 1 : 2)];
    f.left = matching(a, out), f.right = matching(b, out);
  }
  require(step.output().elements == static_cast<int64_t>(f.left.size()) * f.rows * f.columns, "the shapes do not fit");
  return make_product(step, cores, f, added);
}

}  // namespace bittrue
