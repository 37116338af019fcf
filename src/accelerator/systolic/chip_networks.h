// Networks as one program on a chip: weights come from memory once, results between operators stay on the chip.
#pragma once

#include <cstdint>

#include "accelerator/systolic/chip_work.h"

namespace foretoken {

// He et al., CVPR 2016, for pictures of 224 x 224: basic blocks (18, 34 layers) or bottlenecks (50, 101, 152) whose
// middle convolution has the stride. InputError for another depth.
ChipWork resnet_work(int64_t layers, int64_t batch);

// One encoder block of BERT: attention, a feed-forward of four times the width with GELU, two layer norms.
ChipWork bert_block_work(int64_t hidden, int64_t heads, int64_t sequence);

}  // namespace foretoken
