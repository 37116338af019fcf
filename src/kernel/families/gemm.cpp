// y[m,n] = x[m,k] W[n,k]^T, the linear layer.
#include "kernel/families/list.h"
#include "kernel/families/parameters.h"

namespace foretoken {

KernelFamily gemm_family() {
  return {.name = "gemm",
          .summary = "linear layer y[m,n] = x[m,k] W[n,k]^T, activation quantization included",
          .parameters = {variant_parameter(),
                         scheme_parameter("dtype", "how weights and activations are stored and multiplied"),
                         size_parameter("m", "rows of x: tokens", "4096"), size_parameter("n", "outputs", "8192"),
                         size_parameter("k", "inputs", "8192"),
                         size_parameter_or("batch", "independent multiplies, each with its own W", "1")},
          .shape = [](KernelValues v) -> KernelShape {
            return GemmShape{
                .m = count(v[2]), .n = count(v[3]), .k = count(v[4]), .batch = count(v[5]), .scheme = scheme(v[1])};
          }};
}

}  // namespace foretoken
