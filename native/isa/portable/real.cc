// Sums of binary32 products in order, in vectors of four.
#include "isa/real_tiles.h"
#include "isa/real_windows.h"

#include "isa/portable/cores.h"
#include "isa/portable/vectors.h"

namespace bittrue::BITTRUE_ISA {
namespace {

constexpr int kTileRows[] = {8, 6, 4, 3};
using PlaneVector = Vector;
constexpr int kPlaneVectors = 4;
constexpr int kWindowVectors = 2;

#include "isa/real_cores.inc"

}  // namespace
}  // namespace bittrue::BITTRUE_ISA
