// What this processor can run. Operating-system support for the wide registers is part of the answer.
#pragma once

namespace bittrue {

bool cpu_has_avx2();        // with FMA
bool cpu_has_avxvnni();     // the VEX form, with AVX2 and FMA
bool cpu_has_avx512vnni();  // F, BW, DQ, VL and VNNI, with AVX2 and FMA
bool cpu_has_neon_dotprod();

int available_processors();  // how many this process may use

}  // namespace bittrue
