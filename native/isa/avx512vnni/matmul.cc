// Matrix multiplication with VPDPBUSD: tiles of rows x columns whose accumulators live in registers from the bias to
// the stored byte. Columns are cut into panels of 64, 32 or 16; a tile has up to 6, 12 or 12 rows of them. Up to 8
// columns are there twice, and a vector holds two rows; of 17 to 24 the last 8 are.
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/memory.h"
#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/interleave.h"
#include "isa/avx512vnni/requantize.h"
#include "isa/avx512vnni/winograd.h"
#include "isa/tools.h"

namespace bittrue::avx512vnni {
namespace {

// Everything between a tile's accumulators and their users must be inlined, or they would live in memory.
#define BITTRUE_INLINE inline __attribute__((always_inline))
#define BITTRUE_LAMBDA __attribute__((always_inline))

// Accumulator vectors of a panel, 1, 2 or 4 -> rows of a tile. 12 row pointers, the depth and the weights' pointer fill
// the general registers.
constexpr int most_rows(int vectors) { return vectors == 4 ? 6 : 12; }

// Rows of a tile from which on pairs of them are worth it.
constexpr int kFewestOfPairs = 7;

// Bytes of rows, in and out, that several panels pass over in turn: what stays in the second-level cache with them.
constexpr int64_t kBlockBytes = 384 * 1024;

// Which vectors hold two rows, for which their columns 8 to 15 are columns 0 to 7: none, the only one, the second one.
enum class Pairs : uint8_t { none, all, rest };

struct Panel {
  int vectors;
  Pairs pairs;
  int64_t first_column, columns;
  const int8_t* weights;     // [segments * depth / 4][vectors][16][4]
  const int32_t* bias;       // [vectors][16]
  Requantizer* requantizer;  // null where sums are the result
};

struct Tile {
  const Panel* panel;
  const uint8_t* const* rows;
  int64_t capacity, segments, depth;
  bool evenly;  // segments are `segment_step` bytes apart; else every one has its own list of rows
  int64_t segment_step;
  const int32_t* row_terms;  // null when there are none
  uint8_t* out;
  int64_t out_stride;
  int64_t height;  // rows
  int64_t ahead;   // from the weights in use to those that shall be fetched meanwhile
};

BITTRUE_INLINE __m512i broadcast(const uint8_t* bytes) {
  int32_t four;
  std::memcpy(&four, bytes, 4);
  return _mm512_set1_epi32(four);
}

template <Form form, int kRows, int kVectors>
BITTRUE_INLINE void rescale_tile(__m512i (&acc)[kRows][kVectors], const LineGroup* lines) {
  unroll<kVectors>([&](int v) BITTRUE_LAMBDA {
    const Line line = load<form>(lines[v]);
    unroll<kRows>([&](int r) BITTRUE_LAMBDA { acc[r][v] = rescale<form>(acc[r][v], line); });
  });
}

// Any form, through memory.
__attribute__((noinline)) void rescale_buffer(const Requantizer& requantizer, int first, int rows, int vectors,
                                              int32_t* acc) {
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v, acc += 16) {
      _mm512_storeu_si512(acc, requantizer.rescale_any(_mm512_loadu_si512(acc), first + v));
    }
  }
}

// In the panel's form, by its constants from vector kFirst on.
template <int kFirst = 0, int kRows, int kVectors>
BITTRUE_INLINE void rescale_panel(__m512i (&acc)[kRows][kVectors], const Panel& panel) {
  const LineGroup* lines = panel.requantizer->lines() + kFirst;
  switch (panel.requantizer->form()) {
    case Form::short_line: rescale_tile<Form::short_line>(acc, lines); break;
    case Form::short_away: rescale_tile<Form::short_away>(acc, lines); break;
    case Form::line: rescale_tile<Form::line>(acc, lines); break;
    case Form::line_away: rescale_tile<Form::line_away>(acc, lines); break;
    case Form::line_by_sign: rescale_tile<Form::line_by_sign>(acc, lines); break;
    case Form::product: rescale_tile<Form::product>(acc, lines); break;
    case Form::sum_product: rescale_tile<Form::sum_product>(acc, lines); break;
    default: {
      // Not aligned: an aligned frame would take a general register from the loops above.
      int32_t buffer[kRows * kVectors * 16];
      unroll<kRows * kVectors>(
          [&](int i) BITTRUE_LAMBDA { _mm512_storeu_si512(buffer + 16 * i, acc[i / kVectors][i % kVectors]); });
      rescale_buffer(*panel.requantizer, kFirst, kRows, kVectors, buffer);
      unroll<kRows * kVectors>(
          [&](int i) BITTRUE_LAMBDA { acc[i / kVectors][i % kVectors] = _mm512_loadu_si512(buffer + 16 * i); });
    }
  }
}

// Stores 64, 32 or 16 columns of 1, 2 or 4 rows. pack() leaves 4 * kVectors bytes of each row in every 16-byte lane;
// the columns of a panel are arranged so that lanes, once gathered by row, hold consecutive columns.
template <int kVectors>
BITTRUE_INLINE void store_rows(__m512i bytes, uint8_t* out, int64_t out_stride, int rows, int64_t columns) {
  if constexpr (kVectors == 4) {
    if (columns == 64) {
      _mm512_storeu_si512(out, bytes);
    } else {
      _mm512_mask_storeu_epi8(out, (__mmask64{1} << columns) - 1, bytes);
    }
  } else if constexpr (kVectors == 2) {
    bytes = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), bytes);
    const __mmask32 mask = static_cast<__mmask32>((uint64_t{1} << columns) - 1);
    if (columns == 32 && out_stride == 32 && rows == 2) {
      _mm512_storeu_si512(out, bytes);
    } else if (columns == 32) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_castsi512_si256(bytes));
      if (rows > 1) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + out_stride), _mm512_extracti64x4_epi64(bytes, 1));
      }
    } else {
      _mm256_mask_storeu_epi8(out, mask, _mm512_castsi512_si256(bytes));
      if (rows > 1) _mm256_mask_storeu_epi8(out + out_stride, mask, _mm512_extracti64x4_epi64(bytes, 1));
    }
  } else {
    bytes = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
    if (columns == 16 && out_stride == 16 && rows == 4) {
      _mm512_storeu_si512(out, bytes);
      return;
    }
    const __m128i lanes[4] = {_mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                              _mm512_extracti32x4_epi32(bytes, 2), _mm512_extracti32x4_epi32(bytes, 3)};
    const __mmask16 mask = static_cast<__mmask16>((1u << columns) - 1);
    for (int r = 0; r < rows; ++r, out += out_stride) {
      if (columns == 16) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out), lanes[r]);
      } else {
        _mm_mask_storeu_epi8(out, mask, lanes[r]);
      }
    }
  }
}

template <bool kPlain, int kRows, int kVectors>
BITTRUE_INLINE void store_tile(const __m512i (&acc)[kRows][kVectors], const Tile& tile) {
  constexpr int kTogether = 4 / kVectors;
  const Store store = tile.panel->requantizer->store();
  const int64_t columns = tile.panel->columns;
  uint8_t* out = tile.out;
  unroll<(kRows + kTogether - 1) / kTogether>([&](int group) BITTRUE_LAMBDA {
    const int first = group * kTogether, used = kRows - first < kTogether ? kRows - first : kTogether;
    const auto vector = [&](int i) BITTRUE_LAMBDA {
      const int row = i / kVectors < used ? i / kVectors : 0;  // unused rows repeat the first
      return acc[first + row][i % kVectors];
    };
    const __m512i bytes = pack<kPlain>(vector(0), vector(1), vector(2), vector(3), store);
    store_rows<kVectors>(bytes, out, tile.out_stride, used, columns);
    out += used * tile.out_stride;
  });
}

// kChains > 1 splits the depth among several sets of accumulators: with fewer than about 8 accumulators VPDPBUSD would
// wait for itself (4 cycles of latency, two per cycle on Zen 5, one on Zen 4).
template <int kRows, int kVectors, int kChains>
void run_tile(const Tile& tile) {
  const Panel& panel = *tile.panel;
  __m512i chains[kChains][kRows][kVectors];
  unroll<kVectors>([&](int v) BITTRUE_LAMBDA {
    const __m512i bias = _mm512_load_si512(panel.bias + 16 * v);
    unroll<kRows>([&](int r) BITTRUE_LAMBDA { chains[0][r][v] = bias; });
  });
  unroll<kChains - 1>([&](int chain) BITTRUE_LAMBDA {
    unroll<kRows>([&](int r) BITTRUE_LAMBDA {
      unroll<kVectors>([&](int v) BITTRUE_LAMBDA { chains[chain + 1][r][v] = _mm512_setzero_si512(); });
    });
  });
  if (tile.row_terms != nullptr) {
    unroll<kRows>([&](int r) BITTRUE_LAMBDA {
      const __m512i term = _mm512_set1_epi32(tile.row_terms[r]);
      unroll<kVectors>([&](int v) BITTRUE_LAMBDA { chains[0][r][v] = _mm512_add_epi32(chains[0][r][v], term); });
    });
  }

  const int8_t* weights = panel.weights;
  const uint8_t* a_rows[kRows];
  const uint8_t* const* rows = tile.rows;
  unroll<kRows>([&](int r) BITTRUE_LAMBDA { a_rows[r] = rows[r]; });
  const int64_t ahead = tile.ahead;
  const auto step = [&](int chain, int64_t at, const int8_t* from) BITTRUE_LAMBDA {
    // Narrower panels come last, nothing follows them.
    if constexpr (kChains == 1 && kVectors == 4) {
      _mm_prefetch(reinterpret_cast<const char*>(from + ahead), _MM_HINT_T1);
    }
    __m512i b[kVectors];
    unroll<kVectors>([&](int v) BITTRUE_LAMBDA { b[v] = _mm512_load_si512(from + 64 * v); });
    unroll<kRows>([&](int r) BITTRUE_LAMBDA {
      const __m512i a = broadcast(a_rows[r] + at);
      unroll<kVectors>([&](int v)
                           BITTRUE_LAMBDA { chains[chain][r][v] = _mm512_dpbusd_epi32(chains[chain][r][v], a, b[v]); });
    });
  };
  int64_t d = 0;
  for (int64_t segment = tile.segments; segment > 0;) {
    const int64_t end = d + tile.depth;
    if constexpr (kChains > 1) {
      for (; d + 4 * kChains <= end; d += 4 * kChains, weights += 64 * kVectors * kChains) {
        unroll<kChains>([&](int chain) BITTRUE_LAMBDA { step(chain, d + 4 * chain, weights + 64 * kVectors * chain); });
      }
    }
    for (; d != end; d += 4, weights += 64 * kVectors) step(0, d, weights);
    if (--segment == 0) break;
    if (tile.evenly) {
      d += tile.segment_step - tile.depth;
    } else {
      d = 0;
      rows += tile.capacity;
      unroll<kRows>([&](int r) BITTRUE_LAMBDA { a_rows[r] = rows[r]; });
    }
  }

  __m512i(&acc)[kRows][kVectors] = chains[0];
  unroll<kChains - 1>([&](int chain) BITTRUE_LAMBDA {
    unroll<kRows>([&](int r) BITTRUE_LAMBDA {
      unroll<kVectors>([&](int v) BITTRUE_LAMBDA { acc[r][v] = _mm512_add_epi32(acc[r][v], chains[chain + 1][r][v]); });
    });
  });
  if (panel.requantizer == nullptr) {
    uint8_t* out = tile.out;
    unroll<kRows>([&](int r) BITTRUE_LAMBDA {
      unroll<kVectors>([&](int v) BITTRUE_LAMBDA {
        const int64_t left = panel.columns - 16 * v;
        const __mmask16 mask = left >= 16 ? 0xffff : left <= 0 ? 0 : static_cast<__mmask16>((1u << left) - 1);
        _mm512_mask_storeu_epi32(out + 64 * v, mask, acc[r][v]);
      });
      out += tile.out_stride;
    });
    return;
  }
  rescale_panel(acc, panel);
  if (panel.requantizer->plain()) {
    store_tile<true>(acc, tile);
  } else {
    store_tile<false>(acc, tile);
  }
}

// Stores up to 8 columns of up to 8 rows, of which each vector had two.
BITTRUE_INLINE void store_pairs(__m512i bytes, uint8_t* out, int64_t out_stride, int64_t rows, int64_t columns) {
  bytes = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
  if (columns == 8 && out_stride == 8) {
    _mm512_mask_storeu_epi64(out, static_cast<__mmask8>((1u << rows) - 1), bytes);
    return;
  }
  const __m128i lanes[4] = {_mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                            _mm512_extracti32x4_epi32(bytes, 2), _mm512_extracti32x4_epi32(bytes, 3)};
  const __mmask16 mask = static_cast<__mmask16>((1u << columns) - 1);
  for (int64_t r = 0; r < rows; ++r, out += out_stride) {
    const __m128i both = lanes[r / 2];
    _mm_mask_storeu_epi8(out, mask, r % 2 == 0 ? both : _mm_unpackhi_epi64(both, both));
  }
}

template <bool kPlain, int kPairs>
BITTRUE_INLINE void store_pair_tile(const __m512i (&acc)[kPairs][1], const Tile& tile) {
  const Store store = tile.panel->requantizer->store();
  unroll<(kPairs + 3) / 4>([&](int group) BITTRUE_LAMBDA {
    const int first = 4 * group;
    const auto vector = [&](int i) BITTRUE_LAMBDA { return acc[first + i < kPairs ? first + i : first][0]; };
    const __m512i bytes = pack<kPlain>(vector(0), vector(1), vector(2), vector(3), store);
    const int64_t left = tile.height - 2 * first;
    store_pairs(bytes, tile.out + 2 * first * tile.out_stride, tile.out_stride, left < 8 ? left : 8,
                tile.panel->columns);
  });
}

// The same for a panel of pairs, with two rows in each vector; a last row without another one is there twice.
template <int kPairs>
void run_pairs(const Tile& tile) {
  const Panel& panel = *tile.panel;
  constexpr __mmask16 kSecond = 0xff00;
  const auto both = [](int32_t first, int32_t second)
                        BITTRUE_LAMBDA { return _mm512_mask_set1_epi32(_mm512_set1_epi32(first), kSecond, second); };
  __m512i acc[kPairs][1];
  unroll<kPairs>([&](int p) BITTRUE_LAMBDA { acc[p][0] = _mm512_load_si512(panel.bias); });
  const int64_t last = tile.height - 1;
  const auto second = [&](int p) BITTRUE_LAMBDA { return p == kPairs - 1 ? last : 2 * p + 1; };
  if (tile.row_terms != nullptr) {
    unroll<kPairs>([&](int p) BITTRUE_LAMBDA {
      acc[p][0] = _mm512_add_epi32(acc[p][0], both(tile.row_terms[2 * p], tile.row_terms[second(p)]));
    });
  }
  const int8_t* weights = panel.weights;
  const uint8_t* const* rows = tile.rows;
  const uint8_t* pairs[kPairs][2];
  const auto load = [&]() BITTRUE_LAMBDA {
    unroll<kPairs>([&](int p) BITTRUE_LAMBDA { pairs[p][0] = rows[2 * p], pairs[p][1] = rows[second(p)]; });
  };
  load();
  int64_t d = 0;
  for (int64_t segment = tile.segments; segment > 0;) {
    const int64_t end = d + tile.depth;
    for (; d != end; d += 4, weights += 64) {
      const __m512i b = _mm512_load_si512(weights);
      unroll<kPairs>([&](int p) BITTRUE_LAMBDA {
        int32_t four[2];
        std::memcpy(four, pairs[p][0] + d, 4);
        std::memcpy(four + 1, pairs[p][1] + d, 4);
        acc[p][0] = _mm512_dpbusd_epi32(acc[p][0], both(four[0], four[1]), b);
      });
    }
    if (--segment == 0) break;
    if (tile.evenly) {
      d += tile.segment_step - tile.depth;
    } else {
      d = 0;
      rows += tile.capacity;
      load();
    }
  }
  rescale_panel(acc, panel);
  if (panel.requantizer->plain()) {
    store_pair_tile<true>(acc, tile);
  } else {
    store_pair_tile<false>(acc, tile);
  }
}

// Of both rows of a pair, up to 24 columns each.
BITTRUE_INLINE void store_halves(__m512i bytes, uint8_t* out, int64_t out_stride, int64_t rows, int64_t columns) {
  const auto row = [&](int r) BITTRUE_LAMBDA {
    const __m512i order =
        _mm512_setr_epi32(r, 4 + r, 8 + r, 12 + r, 2 + 8 * r, 6 + 8 * r, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, bytes));
  };
  const __mmask32 mask = (__mmask32{1} << columns) - 1;
  _mm256_mask_storeu_epi8(out, mask, row(0));
  if (rows > 1) _mm256_mask_storeu_epi8(out + out_stride, mask, row(1));
}

// A panel of 17 to 24 columns: the first 16 of both rows of a pair, and one vector with the others of both.
template <int kPairs, int kChains>
void run_halves(const Tile& tile) {
  const Panel& panel = *tile.panel;
  constexpr __mmask16 kSecond = 0xff00;
  constexpr int kRows = 2 * kPairs;
  const int64_t last = tile.height - 1;
  const auto at = [&](int r) BITTRUE_LAMBDA { return r == kRows - 1 ? last : r; };
  __m512i wholes[kChains][kRows][1], halves[kChains][kPairs][1];
  unroll<kChains>([&](int chain) BITTRUE_LAMBDA {
    const __m512i whole = chain == 0 ? _mm512_load_si512(panel.bias) : _mm512_setzero_si512();
    const __m512i half = chain == 0 ? _mm512_load_si512(panel.bias + 16) : _mm512_setzero_si512();
    unroll<kRows>([&](int r) BITTRUE_LAMBDA { wholes[chain][r][0] = whole; });
    unroll<kPairs>([&](int p) BITTRUE_LAMBDA { halves[chain][p][0] = half; });
  });
  const auto both = [](__m512i first, __m512i second)
                        BITTRUE_LAMBDA { return _mm512_mask_blend_epi32(kSecond, first, second); };
  if (tile.row_terms != nullptr) {
    unroll<kPairs>([&](int p) BITTRUE_LAMBDA {
      __m512i terms[2];
      unroll<2>([&](int i) BITTRUE_LAMBDA {
        terms[i] = _mm512_set1_epi32(tile.row_terms[at(2 * p + i)]);
        wholes[0][2 * p + i][0] = _mm512_add_epi32(wholes[0][2 * p + i][0], terms[i]);
      });
      halves[0][p][0] = _mm512_add_epi32(halves[0][p][0], both(terms[0], terms[1]));
    });
  }
  const int8_t* weights = panel.weights;
  const uint8_t* const* rows = tile.rows;
  const uint8_t* a_rows[kRows];
  const auto load = [&]() BITTRUE_LAMBDA { unroll<kRows>([&](int r) BITTRUE_LAMBDA { a_rows[r] = rows[at(r)]; }); };
  load();
  const auto step = [&](int chain, int64_t d, const int8_t* from) BITTRUE_LAMBDA {
    const __m512i whole = _mm512_load_si512(from), half = _mm512_load_si512(from + 64);
    unroll<kPairs>([&](int p) BITTRUE_LAMBDA {
      __m512i a[2];
      unroll<2>([&](int i) BITTRUE_LAMBDA {
        a[i] = broadcast(a_rows[2 * p + i] + d);
        __m512i& sum = wholes[chain][2 * p + i][0];
        sum = _mm512_dpbusd_epi32(sum, a[i], whole);
      });
      halves[chain][p][0] = _mm512_dpbusd_epi32(halves[chain][p][0], both(a[0], a[1]), half);
    });
  };
  int64_t d = 0;
  for (int64_t segment = tile.segments; segment > 0;) {
    const int64_t end = d + tile.depth;
    if constexpr (kChains > 1) {
      for (; d + 4 * kChains <= end; d += 4 * kChains, weights += 128 * kChains) {
        unroll<kChains>([&](int chain) BITTRUE_LAMBDA { step(chain, d + 4 * chain, weights + 128 * chain); });
      }
    }
    for (; d != end; d += 4, weights += 128) step(0, d, weights);
    if (--segment == 0) break;
    if (tile.evenly) {
      d += tile.segment_step - tile.depth;
    } else {
      d = 0;
      rows += tile.capacity;
      load();
    }
  }
  unroll<kChains - 1>([&](int chain) BITTRUE_LAMBDA {
    unroll<kRows>([&](int r)
                      BITTRUE_LAMBDA { wholes[0][r][0] = _mm512_add_epi32(wholes[0][r][0], wholes[chain + 1][r][0]); });
    unroll<kPairs>(
        [&](int p) BITTRUE_LAMBDA { halves[0][p][0] = _mm512_add_epi32(halves[0][p][0], halves[chain + 1][p][0]); });
  });
  rescale_panel(wholes[0], panel);
  rescale_panel<1>(halves[0], panel);
  const Store store = panel.requantizer->store();
  const bool plain = panel.requantizer->plain();
  unroll<kPairs>([&](int p) BITTRUE_LAMBDA {
    const __m512i first = wholes[0][2 * p][0], second = wholes[0][2 * p + 1][0], half = halves[0][p][0];
    const __m512i bytes =
        plain ? pack<true>(first, second, half, half, store) : pack<false>(first, second, half, half, store);
    store_halves(bytes, tile.out + 2 * p * tile.out_stride, tile.out_stride, tile.height - 2 * p, panel.columns);
  });
}

using RunTile = void (*)(const Tile&);

// Sets of accumulators, see run_tile.
constexpr int chains(int rows, int vectors) {
  const int one = rows * vectors;
  return one >= 8 ? 1 : (one >= 4 ? 2 : 4);
}

template <int kVectors, int... index>
constexpr RunTile tile_function(int rows, std::integer_sequence<int, index...>) {
  RunTile function = nullptr;
  ((rows == index + 1 ? void(function = run_tile<index + 1, kVectors, chains(index + 1, kVectors)>) : void()), ...);
  return function;
}

template <int kVectors>
struct TileFunctions {
  RunTile by_rows[most_rows(kVectors) + 1] = {};
  constexpr TileFunctions() {
    for (int rows = 1; rows <= most_rows(kVectors); ++rows) {
      by_rows[rows] = tile_function<kVectors>(rows, std::make_integer_sequence<int, most_rows(kVectors)>{});
    }
  }
};

constexpr TileFunctions<1> kTiles1;
constexpr TileFunctions<2> kTiles2;
constexpr TileFunctions<4> kTiles4;

template <int... index>
constexpr RunTile pair_function(int pairs, std::integer_sequence<int, index...>) {
  RunTile function = nullptr;
  ((pairs == index + 1 ? void(function = run_pairs<index + 1>) : void()), ...);
  return function;
}

struct PairFunctions {
  RunTile by_rows[most_rows(1) + 1] = {};
  constexpr PairFunctions() {
    // Few rows have more sums in flight one by one.
    for (int rows = kFewestOfPairs; rows <= most_rows(1); ++rows) {
      by_rows[rows] = pair_function((rows + 1) / 2, std::make_integer_sequence<int, most_rows(1) / 2>{});
    }
  }
};

constexpr PairFunctions kPairTiles;

template <int... index>
constexpr RunTile half_function(int pairs, std::integer_sequence<int, index...>) {
  RunTile function = nullptr;
  ((pairs == index + 1 ? void(function = run_halves<index + 1, chains(index + 1, 3)>) : void()), ...);
  return function;
}

struct HalfFunctions {
  RunTile by_rows[most_rows(2) + 1] = {};
  constexpr HalfFunctions() {
    for (int rows = 1; rows <= most_rows(2); ++rows) {
      by_rows[rows] = half_function((rows + 1) / 2, std::make_integer_sequence<int, most_rows(2) / 2>{});
    }
  }
};

constexpr HalfFunctions kHalfTiles;

RunTile function_for(const Panel& panel, int64_t rows) {
  if (panel.pairs == Pairs::all && rows >= kFewestOfPairs) return kPairTiles.by_rows[rows];
  if (panel.pairs == Pairs::rest) return kHalfTiles.by_rows[rows];
  const int vectors = panel.vectors;
  return vectors == 4 ? kTiles4.by_rows[rows] : (vectors == 2 ? kTiles2.by_rows[rows] : kTiles1.by_rows[rows]);
}

// Widest first; what remains costs the least when 33 to 48 columns become 32 and 16, and 49 to 56 become 32 and 24.
int next_vectors(int64_t columns_left, bool sums) {
  if (columns_left > (sums ? 48 : 56)) return 4;
  return columns_left > 16 ? 2 : 1;
}

class VnniMatmul final : public Matmul {
 public:
  explicit VnniMatmul(const MatmulSpec& spec);
  VnniMatmul(const VnniMatmul&) = delete;
  VnniMatmul& operator=(const VnniMatmul&) = delete;
  ~VnniMatmul() override;

  int64_t panels() const override { return panels_count_; }
  int64_t first_column(int64_t panel) const override {
    return panel < panels_count_ ? panels_[panel].first_column : columns_;
  }
  int64_t tile_rows() const override { return panels_[panels_count_ - 1].vectors == 4 ? most_rows(4) : most_rows(1); }
  bool takes_grids() const override { return true; }
  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override;

 private:
  template <typename FindRows>
  void run_block(const MatmulRows& rows, const Panel& panel, int64_t first_row, int64_t last_row) const;

  int64_t columns_, segments_, depth_, panels_count_ = 0, column_bytes_;
  int64_t block_rows_;  // rows in one pass over several panels: a multiple of every panel's tile
  bool row_terms_;
  Panel* panels_;
  int8_t* constants_;
};

// weights[d / 4][i][d % 4] = byte d of column columns[i], zero where that is -1.
void pack_columns(const MatmulSpec& spec, const int64_t* columns, int64_t width, int8_t* weights) {
  const int64_t row_bytes = spec.segments * spec.depth;
  for (int64_t i = 0; i < width; i += 8) {
    const __m512i column = _mm512_loadu_si512(columns + i);
    const __mmask8 used = static_cast<__mmask8>(~_mm512_movepi64_mask(column));
    const __m512i first = _mm512_mullo_epi64(column, _mm512_set1_epi64(row_bytes));
    for (int64_t d = 0; d < row_bytes; d += 4) {
      const __m256i bytes = _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), used, first, spec.weights + d, 1);
      _mm256_store_si256(reinterpret_cast<__m256i*>(weights + d * width + 4 * i), bytes);
    }
  }
}

// The same of columns first .. first + width - 1 and weights by rows, whose bytes 4k .. 4k + 3 of a column lie in four
// rows. The unpacks leave 64 columns in the order of the accumulators of four vectors, prepared ones as they were.
void pack_rows(const MatmulSpec& spec, int64_t first, const int64_t* columns, int64_t width, int8_t* weights) {
  const __m512i prepare = _mm512_load_si512(kPrepare);
  for (int64_t d = 0; d < spec.depth; d += 4, weights += 4 * width) {
    const int8_t* const from = spec.weights + d * spec.columns;
    if (width == 64 && first + width <= spec.columns) {
      __m512i rows[4];
      for (int r = 0; r < 4; ++r) {
        rows[r] = _mm512_loadu_si512(from + r * spec.columns + first);
        if (spec.sums) rows[r] = _mm512_permutexvar_epi32(prepare, rows[r]);
      }
      interleave(rows[0], rows[1], rows[2], rows[3], reinterpret_cast<uint32_t*>(weights));
      continue;
    }
    for (int64_t i = 0; i < width; ++i) {
      for (int64_t r = 0; r < 4; ++r) weights[4 * i + r] = columns[i] < 0 ? 0 : from[r * spec.columns + columns[i]];
    }
  }
}

// Adds what packed columns can contribute at the least and at the most to their accumulators, for inputs of any bytes.
void add_extremes(const int8_t* weights, int64_t steps, int64_t width, int64_t* least, int64_t* greatest) {
  constexpr int64_t kSteps = int64_t{1} << 20;  // of four bytes each: sums stay within 2^29
  const __m512i ones = _mm512_set1_epi8(1), zero = _mm512_setzero_si512();
  for (int64_t first = 0; first < steps; first += kSteps) {
    const int64_t last = steps - first < kSteps ? steps : first + kSteps;
    for (int64_t i = 0; i < width; i += 16) {
      __m512i low = zero, high = zero;
      for (int64_t step = first; step < last; ++step) {
        const __m512i bytes = _mm512_load_si512(weights + (step * width + i) * 4);
        low = _mm512_dpbusd_epi32(low, ones, _mm512_min_epi8(bytes, zero));
        high = _mm512_dpbusd_epi32(high, ones, _mm512_max_epi8(bytes, zero));
      }
      int32_t lows[16], highs[16];
      _mm512_storeu_si512(lows, low);
      _mm512_storeu_si512(highs, high);
      for (int lane = 0; lane < 16; ++lane) {
        least[i + lane] += 255 * int64_t{lows[lane]};
        greatest[i + lane] += 255 * int64_t{highs[lane]};
      }
    }
  }
}

VnniMatmul::VnniMatmul(const MatmulSpec& spec)
    : columns_(spec.columns),
      segments_(spec.segments),
      depth_(spec.depth),
      column_bytes_(spec.sums ? 4 : 1),
      row_terms_(spec.row_terms) {
  block_rows_ = kBlockBytes / (segments_ * depth_ + columns_ * column_bytes_) / most_rows(1) * most_rows(1);
  if (block_rows_ < 4 * most_rows(1)) block_rows_ = 4 * most_rows(1);
  int64_t vectors = 0;
  for (int64_t column = 0; column < spec.columns; ++panels_count_) {
    const int next = next_vectors(spec.columns - column, spec.sums);
    vectors += next;
    column += 16 * next;
  }
  const int64_t row_bytes = segments_ * depth_;
  panels_ = new Panel[static_cast<size_t>(panels_count_)];
  // All panels' weights, then all biases: 64 bytes per vector.
  constants_ = static_cast<int8_t*>(lasting_memory(static_cast<size_t>(vectors * (row_bytes / 4 + 1) * 64)));
  int8_t* weights = constants_;
  int8_t* bias = constants_ + vectors * (row_bytes / 4) * 64;
  int64_t first_column = 0;
  for (int64_t p = 0; p < panels_count_; ++p) {
    Panel& panel = panels_[p];
    panel.vectors = next_vectors(spec.columns - first_column, spec.sums);
    panel.first_column = first_column;
    const int64_t width = 16 * panel.vectors;
    panel.columns = spec.columns - first_column < width ? spec.columns - first_column : width;
    panel.pairs = spec.sums             ? Pairs::none
                  : panel.columns <= 8  ? Pairs::all
                  : panel.columns <= 16 ? Pairs::none
                  : panel.columns <= 24 ? Pairs::rest
                                        : Pairs::none;
    panel.weights = weights;
    panel.bias = reinterpret_cast<const int32_t*>(bias);
    int64_t columns[64], least[64], greatest[64];
    for (int64_t i = 0; i < width; ++i) {
      // Accumulator j of lane l of vector v ends as byte l * 4 * vectors + v * 4 + j, see store_rows.
      const int64_t v = i / 16, lane = i % 16 / 4, j = i % 4;
      int64_t column = spec.sums ? i : lane * 4 * panel.vectors + v * 4 + j;
      if (panel.pairs == Pairs::all) column %= 8;
      if (panel.pairs == Pairs::rest) column = v == 0 ? i : 16 + i % 8;
      columns[i] = column < panel.columns ? first_column + column : -1;
      const int32_t value = columns[i] < 0 ? 0 : spec.bias[columns[i]];
      std::memcpy(bias + 4 * i, &value, 4);
      least[i] = greatest[i] = value;
    }
    if (spec.by_rows) {
      pack_rows(spec, first_column, columns, width, weights);
    } else {
      pack_columns(spec, columns, width, weights);
    }
    if (!spec.sums) add_extremes(weights, row_bytes / 4, width, least, greatest);
    weights += row_bytes * width;
    panel.requantizer = spec.sums        ? nullptr
                        : spec.row_terms ? new Requantizer(spec.requantize, columns, width)
                                         : new Requantizer(spec.requantize, columns, width, least, greatest);
    bias += 4 * width;
    first_column += panel.columns;
  }
}

VnniMatmul::~VnniMatmul() {
  for (int64_t p = 0; p < panels_count_; ++p) delete panels_[p].requantizer;
  delete[] panels_;
  std::free(constants_);
}

// Where the rows of one tile after the other begin in lists.
class ListRows {
 public:
  ListRows(const MatmulRows& rows, int64_t row) : rows_(rows.rows + row) {}
  static bool evenly() { return false; }
  static int64_t segment_step() { return 0; }
  const uint8_t* const* next(int64_t height) {
    const uint8_t* const* rows = rows_;
    rows_ += height;
    return rows;
  }

 private:
  const uint8_t* const* rows_;
};

// The same in a grid.
class GridRows {
 public:
  GridRows(const MatmulRows& rows, int64_t row) : GridRows(*rows.grid, row) {}
  GridRows(const MatmulGrid& grid, int64_t row)
      : segment_step_(grid.segment_step),
        width_(grid.width),
        step_(grid.row_step),
        jump_(grid.line_step - grid.width * grid.row_step) {
    const int64_t position = grid.first + row;
    x_ = position % width_;
    at_ = grid.base + position / width_ * grid.line_step + x_ * step_;
    const __m512i first = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), step = _mm512_set1_epi64(step_);
    _mm512_store_si512(offsets_, _mm512_mullo_epi64(first, step));
    _mm512_store_si512(offsets_ + 8, _mm512_mullo_epi64(_mm512_add_epi64(first, _mm512_set1_epi64(8)), step));
    list(rows_[0]);
  }

  static bool evenly() { return true; }
  int64_t segment_step() const { return segment_step_; }
  // The next `height` rows. Those after them are listed at once: a tile that read pointers from a store of a whole
  // vector just before would wait for it.
  const uint8_t* const* next(int64_t height) {
    const uint8_t** rows = rows_[turn_];
    turn_ ^= 1;
    at_ += height * step_;
    for (x_ += height; x_ >= width_; x_ -= width_) at_ += jump_;
    list(rows_[turn_]);
    return rows;
  }

 private:
  static constexpr int64_t kMostRows = 16;

  void list(const uint8_t** rows) const {
    if (width_ >= kMostRows) {  // at most one line ends inside of the tile
      const int64_t left = width_ - x_;
      const uint32_t beyond = left < kMostRows ? ~uint32_t{0} << left : 0;
      const __m512i at = _mm512_set1_epi64(reinterpret_cast<int64_t>(at_)), jump = _mm512_set1_epi64(jump_);
      const __m512i low = _mm512_add_epi64(at, _mm512_load_si512(offsets_));
      const __m512i high = _mm512_add_epi64(at, _mm512_load_si512(offsets_ + 8));
      _mm512_store_si512(static_cast<void*>(rows),
                         _mm512_mask_add_epi64(low, static_cast<__mmask8>(beyond), low, jump));
      _mm512_store_si512(static_cast<void*>(rows + 8),
                         _mm512_mask_add_epi64(high, static_cast<__mmask8>(beyond >> 8), high, jump));
    } else {
      const uint8_t* at = at_;
      for (int64_t r = 0, x = x_; r < most_rows(1); ++r) {
        rows[r] = at;
        at += step_;
        if (++x == width_) {
          x = 0;
          at += jump_;
        }
      }
    }
  }

  alignas(64) const uint8_t* rows_[2][kMostRows];
  alignas(64) int64_t offsets_[kMostRows];
  int64_t segment_step_, width_, step_, jump_;  // jump_: from the end of a line to the start of the next
  int64_t x_;
  const uint8_t* at_;
  int turn_ = 0;
};

template <typename FindRows>
void VnniMatmul::run_block(const MatmulRows& rows, const Panel& panel, int64_t first_row, int64_t last_row) const {
  // Rows are shared out evenly: 49 of them make 9 tiles of 5 or 6.
  const int64_t count = last_row - first_row;
  const int64_t most = most_rows(panel.vectors);
  const int64_t tiles = count <= most ? 1 : (count + most - 1) / most;
  const int64_t least = tiles == 1 ? count : count / tiles, taller = count - least * tiles;
  Tile tile;
  tile.panel = &panel;
  tile.capacity = rows.capacity;
  tile.segments = segments_;
  tile.depth = depth_;
  FindRows find(rows, first_row);
  tile.evenly = find.evenly();
  tile.segment_step = find.segment_step();
  tile.out_stride = rows.out_stride;
  int64_t row = first_row;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t height = least + (i < taller ? 1 : 0);
    tile.rows = find.next(height);
    tile.row_terms = row_terms_ ? rows.row_terms + row : nullptr;
    tile.out = rows.out + row * rows.out_stride + panel.first_column * column_bytes_;
    // The first tiles fetch the next panel, each another vector of every four bytes of depth; twice, as some of it is dropped.
    tile.ahead = i < 2 * panel.vectors ? segments_ * depth_ * 16 * panel.vectors + 64 * (i % panel.vectors) : 0;
    tile.height = height;
    function_for(panel, height)(tile);
    row += height;
  }
}

void VnniMatmul::run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const {
  const int64_t block = last_panel - first_panel > 1 ? block_rows_ : rows.count;
  for (int64_t first = 0; first < rows.count; first += block) {
    const int64_t last = rows.count - first < block ? rows.count : first + block;
    for (int64_t p = first_panel; p < last_panel; ++p) {
      if (rows.grid != nullptr) {
        run_block<GridRows>(rows, panels_[p], first, last);
      } else {
        run_block<ListRows>(rows, panels_[p], first, last);
      }
    }
  }
}

}  // namespace

std::unique_ptr<Matmul> make_matmul(const MatmulSpec& spec) {
  if (auto fewer = make_winograd(spec)) return fewer;
  return std::unique_ptr<Matmul>(spec.pairs ? nullptr : new VnniMatmul(spec));
}

}  // namespace bittrue::avx512vnni
