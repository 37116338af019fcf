// Run-length coding of zeros between chip and DRAM (Eyeriss, JSSC 52(1) 2017, section IV-B): pairs of a 5-bit run of
// zeros and the 16-bit value after it, three pairs to a word of 64 bits.
#pragma once

namespace foretoken {

// Coded bytes per plain byte of 16-bit values of which `zero_share` (0 to 1) are zero, independently of each other:
//   (64/3 bits per pair) / 16 bits * (1 - z) / (1 - z^32)
// A value that is not zero ends a pair; so does the 32nd zero of a run, as the run counts to 31. Above one (4/3) for
// data without zeros.
double run_length_ratio(double zero_share);

}  // namespace foretoken
