// One exported function per family; the list is in list.cpp.
#pragma once

#include "kernel/family.h"

namespace foretoken {

KernelFamily gemm_family();
KernelFamily attention_prefill_family();
KernelFamily attention_decode_family();
KernelFamily attention_mixed_family();
KernelFamily attention_encoder_family();
KernelFamily attention_backward_family();
KernelFamily mla_prefill_family();
KernelFamily mla_decode_family();
KernelFamily mla_bmm_family();
KernelFamily moe_family();
KernelFamily quantize_family();
KernelFamily linattn_gdn_family();
KernelFamily linattn_kda_family();
KernelFamily linattn_mamba2_family();
KernelFamily linattn_lightning_family();
KernelFamily mhc_family();
KernelFamily norm_family();
KernelFamily rope_family();
KernelFamily activation_family();
KernelFamily elementwise_family();
KernelFamily softmax_family();
KernelFamily embedding_family();
KernelFamily kv_write_family();
KernelFamily sampling_family();
KernelFamily conv_family();
KernelFamily pool_family();
KernelFamily spmm_family();
KernelFamily sddmm_family();

}  // namespace foretoken
