// Add your line here; the name in it is what users type and what measurement files are called.
#include "kernel/families/list.h"

namespace foretoken {

std::span<const KernelFamily> kernel_families() {
  static const std::vector<KernelFamily> families = {
      gemm_family(),
      attention_prefill_family(),
      attention_decode_family(),
      attention_mixed_family(),
      attention_encoder_family(),
      attention_backward_family(),
      mla_prefill_family(),
      mla_decode_family(),
      mla_bmm_family(),
      moe_family(),
      quantize_family(),
      linattn_gdn_family(),
      linattn_kda_family(),
      linattn_mamba2_family(),
      linattn_lightning_family(),
      mhc_family(),
      norm_family(),
      rope_family(),
      activation_family(),
      elementwise_family(),
      softmax_family(),
      embedding_family(),
      kv_write_family(),
      sampling_family(),
      conv_family(),
      pool_family(),
      spmm_family(),
      sddmm_family(),
  };
  return families;
}

}  // namespace foretoken
