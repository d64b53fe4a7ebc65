#include "operators/layers/matmul_convolution.h"

#include <algorithm>
#include <cstring>

#include "core/share.h"
#include "operators/layers/fused_add.h"
#include "operators/layers/fused_table.h"
#include "operators/layers/layer_sum.h"

namespace bittrue {
namespace {

constexpr int64_t kChunk = 16;

// Fills `count` bytes that at least `room` bytes follow, which are written afterwards.
void fill_before(uint8_t* target, int64_t count, int64_t room, uint8_t value) {
  if (room < kChunk) {
    std::memset(target, value, static_cast<size_t>(count));
    return;
  }
  for (int64_t i = 0; i < count; i += kChunk) std::memset(target + i, value, kChunk);
}

// How rows of the product are found.
enum class RowsOf {
  taps,   // one segment per tap, pointing into the image or to a row of zero points
  lines,  // one segment per row of taps (per tap when dilated), without a look at the image's edges
};

// Below this many channels a segment per tap is too short to be worth its pointer: a padded copy, in which the taps of
// a row lie side by side, costs less.
constexpr int64_t kShortestTap = 256;
// Bytes of input that one block of rows covers: stays in the first-level cache beside a panel of weights.
constexpr int64_t kBlockBytes = 24 << 10;
constexpr int64_t kMostBlockRows = 512;
// Bytes of sums that wait for an addition: they stay in the second-level cache.
constexpr int64_t kSumBytes = 128 << 10;

// Bytes of weights that stay in the second-level cache beside images.
constexpr int64_t kCachedWeights = 128 << 10;

// Fewer windows are not worth reading transformed weights, which are eight times as many bytes.
constexpr int64_t kFewestWindows = 64;

// Multiply-adds and results in a nanosecond; see CoreSet::byte_rate.
constexpr int64_t kTileRate = 220, kResultRate = 16;

class MatmulConvolution final : public Kernel {
 public:
  MatmulConvolution(const Step& step, const CoreSet& cores, const Window& window, const SignedWeights& weights,
                    const std::vector<int64_t>& bias, const rules::Requantize& requantize, const ConvolutionSums& sums,
                    int64_t together = 1);

  void run(const Run& run) const override;
  int64_t scratch_bytes(int threads) const override { return copy_bytes() + zero_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 || input == 2; }
  bool does_then() const override { return add_ || sum_; }
  std::string note() const override;

 private:
  struct Image {
    const uint8_t* data;   // the input, or the padded copy
    int64_t plane;         // bytes from one plane to the next
    int64_t row;           // bytes from one line to the next
    int64_t pixel;         // bytes from one pixel to the next
    const uint8_t* zeros;  // a row of zero points
  };

  int64_t copy_h() const { return window_.in_h + window_.pad_top + window_.pad_bottom; }
  // Lines of all planes.
  int64_t copy_lines() const { return (window_.in_d + window_.pad_front + window_.pad_back) * copy_h(); }
  // Zero points between the lines of the padded copy: those right of one line are left of the next, too.
  int64_t gap() const { return std::max(window_.pad_left, window_.pad_right) * window_.in_c; }
  int64_t copy_line() const { return window_.in_w * window_.in_c + gap(); }
  int64_t copy_bytes() const { return copies_ ? round_up(copy_lines() * copy_line() + gap() + kSlack, 64) : 0; }
  int64_t list_bytes() const { return grid_ ? 0 : round_up(segments_ * block_ * 8, 64); }
  int64_t sum_bytes() const { return sum_ ? round_up(block_ * window_.out_c * 4, 64) : 0; }
  int64_t worker_bytes() const {
    return list_bytes() + round_up(block_ * 4, 64) + sum_bytes() + unfolded_bytes() + round_up(matmul_->scratch(), 64);
  }
  int64_t unfolded_bytes() const { return unfolded_ == 0 ? 0 : round_up(block_ * (8 + unfolded_) + kChunk, 64); }

  // Zero points that are known while running only are spread in scratch memory.
  int64_t zero_bytes() const { return late() && rows_ == RowsOf::taps ? round_up(depth_, 64) : 0; }
  bool late() const { return sums_.zero_point != ConvolutionSums::kNone; }

  void copy_image(const uint8_t* in, uint8_t zero_point, uint8_t* copy, ThreadPool& pool, int threads) const;
  void correct(uint8_t* out, int64_t count, int64_t first_column, int64_t columns, uint32_t zero_point) const;
  void find_rows(const Image& image, int64_t first, int64_t count, const uint8_t** rows) const;
  void find_taps(const Image& image, int64_t z, int64_t y, int64_t first_x, int64_t count, const uint8_t** rows) const;
  const uint8_t* const* unfold(const uint8_t* const* rows, int64_t count, uint8_t* scratch) const;

  // A segment of the padded copy may be read past its end: three bytes, or the rest of a chunk.
  static constexpr int64_t kSlack = 64;

  Window window_;
  RowsOf rows_;
  int64_t segments_, segment_, depth_, block_;  // bytes of a segment, and the same rounded up to four
  bool copies_ = false;
  int64_t unfolded_ = 0;  // bytes of a row whose segments are laid side by side, as pairs lie in two of them
  bool grid_ = false;     // the core finds the rows itself
  int64_t in_pixel_, out_stride_, other_stride_ = 0;
  uint8_t in_zero_point_;
  int64_t zero_point_;  // of the weights
  int64_t rate_, result_rate_;
  ConvolutionSums sums_;
  std::vector<uint32_t> corrections_;  // of sums, per unit of a zero point that is known while running
  RowTerms row_terms_;
  std::vector<uint8_t> zeros_;
  FusedTable table_;
  FusedAdd add_;
  LayerSum sum_;
  std::unique_ptr<Matmul> matmul_;
};

MatmulConvolution::MatmulConvolution(const Step& step, const CoreSet& cores, const Window& window,
                                     const SignedWeights& weights, const std::vector<int64_t>& bias,
                                     const rules::Requantize& requantize, const ConvolutionSums& sums, int64_t together)
    : window_(window),
      in_pixel_(step.input(0).row_stride),
      out_stride_(step.output().row_stride * together),
      in_zero_point_(sums.zero_point == ConvolutionSums::kNone ? stored_zero_point(step) : uint8_t{0}),
      zero_point_(weights.zero_point),
      rate_(cores.byte_rate(kTileRate)),
      result_rate_(cores.byte_rate(kResultRate)),
      sums_(sums),
      row_terms_(cores.row_terms()),
      table_(step, cores),
      add_(step, cores) {
  if (sums.wanted && step.then != nullptr) {
    sum_ = LayerSum(*step.then, cores, window.out_c);
    other_stride_ = step.inputs.back()->row_stride;
  }
  const int64_t channels = window.in_c, taps = window.taps();
  require(taps <= 4096 && channels * taps <= (int64_t{1} << 24), "the filter is very large");
  const bool whole = channels % 4 == 0;
  rows_ = whole && taps > 1 && (channels >= kShortestTap || window.dilation_w > 1) ? RowsOf::taps : RowsOf::lines;
  const bool pairs = adds_in_pairs(step);
  // Pairs of an odd number of channels begin anew at every tap: each is a segment, whose last word is filled up.
  const bool anew = pairs && step.integers.count("pairs_by_tap") != 0;
  bool whole_lines = rows_ == RowsOf::lines && window.dilation_w == 1 && !anew;
  segment_ = whole_lines ? window.filter_w * channels : channels;
  segments_ = whole_lines ? window.filter_d * window.filter_h : taps;
  depth_ = round_up(segment_, 4);
  // Lines can be read in place where nothing is padded, no byte past the end is touched and pixels lie side by side.
  const bool side_by_side = in_pixel_ == channels || (taps == 1 && segment_ == channels);
  if (pairs && !anew && segment_ % 2 != 0 && segments_ > 1) unfolded_ = round_up(segments_ * segment_, 4);

  // Weights that need no bytes between segments are used as they are.
  const int64_t used = unfolded_ == 0 ? segment_ : segments_ * segment_, wide = unfolded_ == 0 ? depth_ : unfolded_;
  const int64_t parts = unfolded_ == 0 ? segments_ : 1;
  std::vector<int8_t> packed(used == wide ? 0 : static_cast<size_t>(window.out_c * parts * wide), 0);
  std::vector<int32_t> folded(static_cast<size_t>(window.out_c));
  for (int64_t n = 0; n < window.out_c; ++n) {
    const int8_t* filter = weights.data + n * taps * channels;
    for (int64_t s = 0; s < parts && used != wide; ++s) {
      std::memcpy(packed.data() + (n * parts + s) * wide, filter + s * used, static_cast<size_t>(used));
    }
    const int64_t count = taps * channels;
    const uint32_t factor = zero_point_factor(count, zero_point_, sum_of(filter, count));
    if (late()) corrections_.push_back(factor);
    folded[n] = folded_bias(bias[n], in_zero_point_, factor);
  }
  MatmulSpec spec;
  spec.columns = window.out_c;
  spec.segments = parts;
  spec.depth = wide;
  spec.weights = used == wide ? weights.data : packed.data();
  spec.bias = folded.data();
  spec.row_terms = zero_point_ != 0;
  spec.requantize = requantize;
  spec.sums = sums.wanted;
  spec.pairs = pairs;
  const bool squares = window.filter_d == 1 && window.filter_h == 3 && window.filter_w == 3 && window.stride_h == 1 &&
                       window.stride_w == 1 && window.dilation_h == 1 && window.dilation_w == 1 && window.out_d == 1;
  if (squares && whole && window.out_h * window.out_w >= kFewestWindows) {
    spec.window_line = window.out_w;
    spec.window_lines = window.out_h;
  }
  matmul_ = cores.matmul(spec);
  if (matmul_->scratch() != 0) {
    rows_ = RowsOf::lines, whole_lines = true;
    segments_ = 3, segment_ = depth_ = 3 * channels;
  }
  copies_ = rows_ == RowsOf::lines && (window.padded() || segment_ != depth_ || !side_by_side);
  zeros_.assign(static_cast<size_t>(rows_ == RowsOf::taps ? depth_ : 0), in_zero_point_);

  // A list of rows is cheaper where several panels read it and there is one list only.
  grid_ = whole_lines && window.out_d == 1 && window.filter_d == 1 && zero_point_ == 0 && matmul_->takes_grids() &&
          (segments_ > 1 || matmul_->panels() == 1);

  const int64_t tile = matmul_->tile_rows();
  // Neighbours in the image share most of what they read.
  const int64_t fresh =
      whole_lines ? std::min(segments_ * depth_, window.stride_h * window.stride_w * channels) : segments_ * depth_;
  int64_t wanted = std::min(kMostBlockRows, kBlockBytes / std::max<int64_t>(1, fresh));
  // Where there are more weights than activations, they are read once.
  if (window.out_c > window.pixels()) wanted = kMostBlockRows;
  if (sum_) wanted = std::min(wanted, kSumBytes / (4 * window.out_c));
  const int64_t fewest = sum_ && matmul_->scratch() != 0 ? 2 : 8;  // sums of lines of tiles are many
  block_ = round_up(std::max<int64_t>(wanted, fewest * tile), tile);
  block_ = std::min(block_, std::max<int64_t>(1, window.pixels()));
}

// Every line of the copy is a gap and then the image's line; one more gap ends the last line.
void MatmulConvolution::copy_image(const uint8_t* in, uint8_t zero_point, uint8_t* copy, ThreadPool& pool,
                                   int threads) const {
  const int64_t line = copy_line(), before = gap(), body = window_.in_w * window_.in_c;
  // Threads copy about what they read afterwards.
  const int64_t most = (32 << 10) / std::max<int64_t>(1, line), each = (copy_lines() + threads - 1) / threads;
  const int64_t per_task = std::max<int64_t>(1, std::min(most, std::max(each, most / 8)));
  pool.parallel((copy_lines() + per_task - 1) / per_task, threads, [&](int64_t task, int) {
    const int64_t last = std::min(copy_lines(), (task + 1) * per_task);
    for (int64_t y = task * per_task; y < last; ++y) {
      uint8_t* target = copy + y * line;
      const int64_t plane = y / copy_h() - window_.pad_front, from = y % copy_h() - window_.pad_top;
      if (plane < 0 || plane >= window_.in_d || from < 0 || from >= window_.in_h) {
        std::memset(target, zero_point, static_cast<size_t>(line));
        continue;
      }
      fill_before(target, before, body, zero_point);
      const uint8_t* source = in + (plane * window_.in_h + from) * window_.in_w * in_pixel_;
      if (in_pixel_ == window_.in_c) {
        std::memcpy(target + before, source, static_cast<size_t>(body));
      } else {
        for (int64_t x = 0; x < window_.in_w; ++x) {
          std::memcpy(target + before + x * window_.in_c, source + x * in_pixel_, static_cast<size_t>(window_.in_c));
        }
      }
    }
    // The last segment is read to the end of its last word.
    if (last == copy_lines())
      std::memset(copy + last * line, zero_point, static_cast<size_t>(before + depth_ - segment_));
  });
}

// Adds what zero points that are known while running contribute to the sums of `count` pixels, in some columns.
void MatmulConvolution::correct(uint8_t* out, int64_t count, int64_t first_column, int64_t columns,
                                uint32_t zero_point) const {
  if (!late() || zero_point == 0) return;
  for (int64_t r = 0; r < count; ++r, out += out_stride_) {
    auto* sums = reinterpret_cast<uint32_t*>(out);
    for (int64_t n = first_column; n < first_column + columns; ++n) sums[n] += zero_point * corrections_[n];
  }
}

// Pointers for output pixels [first, first + count) of one image, all segments.
void MatmulConvolution::find_rows(const Image& image, int64_t first, int64_t count, const uint8_t** rows) const {
  int64_t line = first / window_.out_w, x = first % window_.out_w;
  for (int64_t done = 0; done < count;) {
    const int64_t stretch = std::min(count - done, window_.out_w - x), z = line / window_.out_h,
                  y = line % window_.out_h;
    if (rows_ == RowsOf::taps) {
      find_taps(image, z, y, x, stretch, rows + done);
    } else {
      const int64_t step = window_.stride_w * image.pixel;
      const int64_t across = segment_ == window_.in_c ? window_.filter_w : 1;
      for (int64_t s = 0; s < segments_; ++s) {
        const int64_t down = s / across, i = down % window_.filter_h, deep = down / window_.filter_h;
        const uint8_t* at = image.data + (z * window_.stride_d + deep * window_.dilation_d) * image.plane +
                            (y * window_.stride_h + i * window_.dilation_h) * image.row +
                            (x * window_.stride_w + s % across * window_.dilation_w) * image.pixel;
        const uint8_t** target = rows + s * block_ + done;
        for (int64_t r = 0; r < stretch; ++r) target[r] = at + r * step;
      }
    }
    done += stretch;
    x = 0;
    ++line;
  }
}

void MatmulConvolution::find_taps(const Image& image, int64_t z, int64_t y, int64_t first_x, int64_t count,
                                  const uint8_t** rows) const {
  const int64_t step = window_.stride_w * image.pixel;
  for (int64_t i = 0; i < window_.filter_d * window_.filter_h; ++i) {
    const int64_t plane = z * window_.stride_d + i / window_.filter_h * window_.dilation_d - window_.pad_front;
    const int64_t line = y * window_.stride_h + i % window_.filter_h * window_.dilation_h - window_.pad_top;
    for (int64_t j = 0; j < window_.filter_w; ++j) {
      const uint8_t** target = rows + (i * window_.filter_w + j) * block_;
      if (plane < 0 || plane >= window_.in_d || line < 0 || line >= window_.in_h) {
        std::fill(target, target + count, image.zeros);
        continue;
      }
      // Outputs x with 0 <= x * stride + shift < in_w read the image; the others read zero points.
      const int64_t shift = j * window_.dilation_w - window_.pad_left;
      const int64_t begin = shift < 0 ? (-shift + window_.stride_w - 1) / window_.stride_w : 0;
      const int64_t end = shift >= window_.in_w ? 0 : (window_.in_w - shift + window_.stride_w - 1) / window_.stride_w;
      const int64_t low = std::min(count, std::max<int64_t>(0, begin - first_x));
      const int64_t high = std::max(low, std::min(count, end - first_x));
      const uint8_t* at =
          image.data + plane * image.plane + line * image.row + (first_x * window_.stride_w + shift) * image.pixel;
      std::fill(target, target + low, image.zeros);
      for (int64_t r = low; r < high; ++r) target[r] = at + r * step;
      std::fill(target + high, target + count, image.zeros);
    }
  }
}

// `count` rows of a block with their segments side by side. Chunks are copied whole: what is too much is written over by
// the next segment, and behind the last one meets weights of zero.
const uint8_t* const* MatmulConvolution::unfold(const uint8_t* const* rows, int64_t count, uint8_t* scratch) const {
  auto** list = reinterpret_cast<const uint8_t**>(scratch);
  uint8_t* target = scratch + block_ * 8;
  for (int64_t r = 0; r < count; ++r, target += unfolded_) {
    list[r] = target;
    for (int64_t s = 0; s < segments_; ++s) {
      const uint8_t* from = rows[s * block_ + r];
      uint8_t* to = target + s * segment_;
      for (int64_t i = 0; i < segment_; i += kChunk) std::memcpy(to + i, from + i, kChunk);
    }
  }
  return list;
}

void MatmulConvolution::run(const Run& run) const {
  const int64_t pixels = window_.out_d * window_.out_h * window_.out_w;
  if (pixels == 0 || window_.out_c == 0) return;
  uint8_t* copy = run.scratch;
  const uint8_t zero_point = late() ? run.inputs[sums_.zero_point][0] : in_zero_point_;
  const uint8_t* zeros = zeros_.data();
  if (zero_bytes() != 0) {
    std::memset(run.scratch + copy_bytes(), zero_point, static_cast<size_t>(depth_));
    zeros = run.scratch + copy_bytes();
  }
  const int64_t panels = matmul_->panels();
  const int64_t results = window_.pixels() * window_.out_c;
  const int threads = run.pool.threads_for(results * segments_ * segment_ / rate_ + results / result_rate_);
  // Where there are more weights than activations each thread takes columns, so that all weights are read once; but rows
  // where its cache holds all weights, since the next steps read them again.
  const int64_t tiles = (pixels + matmul_->tile_rows() - 1) / matmul_->tile_rows();
  const bool rows_fit = tiles % threads == 0 && window_.out_c * segments_ * segment_ <= kCachedWeights;
  const bool by_columns = window_.out_c > pixels && !rows_fit && (panels % threads == 0 || panels >= 4 * threads);
  const int64_t groups = cut(threads > 1 && by_columns ? group_count(panels, threads) : 1,
                             std::min(block_, pixels) * window_.out_c * segments_ * segment_, kTaskMostWork, panels);
  const int64_t unit = matmul_->scratch() != 0 ? matmul_->tile_rows() : 1;
  // Lines of tiles are long: of those that are over each thread takes some columns.
  int64_t over = unit > 1 && groups == 1 && tiles >= threads && panels >= threads ? tiles % threads : 0;
  // Blocks are equally large, so that no thread gets a short rest.
  const auto cut_into = [&](int64_t count) {
    const int64_t wanted = task_count(count, block_, matmul_->tile_rows(), groups > 1 ? 1 : threads);
    return round_up((count + wanted - 1) / wanted, unit);
  };
  int64_t alike = over > 0 ? (tiles - over) * unit : pixels, size = cut_into(alike);
  if (over > 0 && alike / unit % (size / unit * threads) != 0) over = 0, alike = pixels, size = cut_into(alike);
  const int64_t blocks = (alike + size - 1) / size, each = over > 0 ? blocks / threads : blocks;
  for (int64_t n = 0; n < window_.batch; ++n) {
    const uint8_t* in = run.inputs[0] + n * window_.in_d * window_.in_h * window_.in_w * in_pixel_;
    uint8_t* out = run.outputs[0] + n * pixels * out_stride_;
    Image image{in, window_.in_h * window_.in_w * in_pixel_, window_.in_w * in_pixel_, in_pixel_, zeros};
    if (copies_) {
      copy_image(in, zero_point, copy, run.pool, threads);
      image = {copy + gap() - window_.pad_left * window_.in_c, copy_h() * copy_line(), copy_line(), window_.in_c,
               zeros};
    }
    run.pool.parallel(blocks * groups + over * threads, threads, [&](int64_t task, int worker) {
      uint8_t* scratch = run.scratch + copy_bytes() + zero_bytes() + worker * worker_bytes();
      auto* rows = reinterpret_cast<const uint8_t**>(scratch);
      auto* terms = reinterpret_cast<int32_t*>(scratch + list_bytes());
      int64_t first = task / groups * size, count = std::min(size, pixels - first);
      int64_t first_panel = panels * (task % groups) / groups, last_panel = panels * (task % groups + 1) / groups;
      if (over > 0) {
        const int64_t share = task / (each + over), place = task % (each + over);
        if (place < each) {
          first = (share * each + place) * size, count = size;
        } else {
          first = alike + (place - each) * unit, count = std::min(unit, pixels - first);
          first_panel = panels * share / threads, last_panel = panels * (share + 1) / threads;
        }
      }
      MatmulRows part;
      part.rows = rows;
      part.capacity = block_;
      MatmulGrid grid;
      if (grid_) {
        grid = {image.data,
                first,
                window_.out_w,
                window_.stride_w * image.pixel,
                window_.stride_h * image.row,
                window_.dilation_h * image.row};
        part.grid = &grid;
      } else {
        find_rows(image, first, count, rows);
      }
      if (zero_point_ != 0) {
        row_terms_(rows, block_, segments_, segment_, count, static_cast<int32_t>(-zero_point_), terms);
      }
      if (unfolded_ != 0)
        part.rows = unfold(rows, count, scratch + list_bytes() + round_up(block_ * 4, 64) + sum_bytes());
      part.count = count;
      part.row_terms = terms;
      part.scratch = scratch + worker_bytes() - round_up(matmul_->scratch(), 64);
      uint8_t *target = out + first * out_stride_, *sums = scratch + list_bytes() + round_up(block_ * 4, 64);
      part.out = sum_ ? sums : target;
      part.out_stride = sum_ ? window_.out_c * 4 : out_stride_;
      matmul_->run(part, first_panel, last_panel);
      const int64_t column = matmul_->first_column(first_panel), columns = matmul_->first_column(last_panel) - column;
      correct(target, count, column, columns, zero_point);
      table_.apply(target + column, out_stride_, count, columns);
      if (!does_then()) return;
      const uint8_t* other = run.inputs[3] + column;
      add_.apply(target + column, out_stride_, other, n * pixels + first, count, columns);
      if (!sum_) return;
      other += (n * pixels + first) * other_stride_;
      for (int64_t r = 0; r < count; ++r, other += other_stride_) {
        const auto* acc = reinterpret_cast<const int32_t*>(sums) + r * window_.out_c + column;
        sum_.row(acc, other, target + r * out_stride_ + column, column, columns);
      }
    });
  }
}

std::string MatmulConvolution::note() const {
  const char* how = rows_ == RowsOf::taps ? "taps"
                    : copies_             ? "a padded copy"
                    : window_.taps() == 1 ? "pixels"
                                          : "lines";
  return std::string("matmul over ") + how + (matmul_->scratch() != 0 ? " by fewer products" : "") +
         (zero_point_ != 0 ? ", weight zero point by row sums" : "") + table_.note() +
         (does_then() ? ", addition fused" : "");
}

// Whether two neighbours of a line are sooner worked out as one pixel with twice the columns, whose window is as wide as
// both of theirs: few columns leave vectors half empty.
bool go_together(const Step& step, const CoreSet& cores, const Window& window, const SignedWeights& weights) {
  const int64_t lanes = cores.real_matmul().lanes, filter = window.filter_w, channels = window.in_c;
  const auto products = [&](int64_t width, int64_t columns) {
    return round_up(width * channels, 4) * round_up(columns, lanes);
  };
  return window.out_w % 2 == 0 && window.dilation_w == 1 && channels < kShortestTap && weights.zero_point == 0 &&
         step.then == nullptr && !adds_in_pairs(step) && step.output().row_stride == window.out_c &&
         products(filter + window.stride_w, 2 * window.out_c) < 2 * products(filter, window.out_c);
}

}  // namespace

std::unique_ptr<Kernel> make_matmul_convolution(const Step& step, const CoreSet& cores, const Window& window,
                                                const SignedWeights& weights, const std::vector<int64_t>& bias,
                                                const rules::Requantize& requantize, const ConvolutionSums& sums) {
  if (!go_together(step, cores, window, weights)) {
    return std::make_unique<MatmulConvolution>(step, cores, window, weights, bias, requantize, sums);
  }
  Window both = window;
  both.filter_w += window.stride_w;
  both.stride_w *= 2;
  both.out_w /= 2;
  both.out_c *= 2;
  const int64_t line = window.filter_w * window.in_c, wide = both.filter_w * window.in_c;
  const int64_t lines = window.out_c * window.filter_d * window.filter_h, shift = window.stride_w * window.in_c;
  SignedWeights spread;
  spread.moved.assign(static_cast<size_t>(2 * lines * wide), 0);
  spread.data = spread.moved.data();
  for (int64_t i = 0; i < lines; ++i) {
    for (int64_t pixel = 0; pixel < 2; ++pixel) {
      std::memcpy(spread.moved.data() + (pixel * lines + i) * wide + pixel * shift, weights.data + i * line,
                  static_cast<size_t>(line));
    }
  }
  std::vector<int64_t> biases = bias;
  biases.insert(biases.end(), bias.begin(), bias.end());
  rules::Requantize twice = requantize;
  if (twice.multipliers.size() > 1) {
    twice.multipliers.insert(twice.multipliers.end(), requantize.multipliers.begin(), requantize.multipliers.end());
  }
  return std::make_unique<MatmulConvolution>(step, cores, both, spread, biases, twice, sums, 2);
}

}  // namespace bittrue
