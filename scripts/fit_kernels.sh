#!/bin/sh
# Fits every kernel calibration that ships, each from its own measurements:
#   FORETOKEN_DATA=... scripts/fit_kernels.sh DATE FOLDER [option of `foretoken fit kernels` ...]
# With --cross-only the measured tiers in FOLDER stay, which is several times as quick.
# FAMILIES="gemm moe" takes only the lines below that have one of these families.
set -eu
date=$1 folder=$2
shift 2
database="ai-dynamo/aiconfigurator performance database at commit 095f58a51c4ca8e61b66ec108d86f223f8d559ce"
licence="Apache-2.0, (c) NVIDIA"
main="$database (main campaign), $licence"
kernels=$FORETOKEN_DATA/kernels own=data/measured
vllm=$FORETOKEN_DATA/llmservingsim/v1
simulator="casys-kaist/LLMServingSim 5daddb2 (vLLM 0.19 layer tables), MIT, (c) CASYS Lab, KAIST"
eager=$FORETOKEN_DATA/neusight/kernels_

fit() { # FAMILIES DATA SOURCE [option ...]
  families=$1 data=$2 source=$3
  shift 3
  if [ -n "${FAMILIES:-}" ]; then
    wanted=no
    for family in $FAMILIES; do case ",$families," in *",$family,"*) wanted=yes ;; esac; done
    [ $wanted = yes ] || return 0
  fi
  foretoken fit kernels --data "$data" --families "$families" --source "$source" --date "$date" --out "$folder" "$@"
}

fit gemm,mla_prefill,mla_decode,mla_bmm "$kernels,$own" "$main; data/measured (H200)" "$@"
fit attention_prefill,attention_decode "$kernels,$own,$vllm" "$main; data/measured (H200); $simulator" "$@"
fit attention_mixed "$kernels,$vllm" "$main; $simulator" "$@"
fit moe,attention_encoder "$kernels" "$main" "$@"
fit quantize_fp8,norm,rope,activation,softmax,embedding,kv_write,elementwise,sampling "$kernels,$own" \
  "$main; data/measured (H200)" "$@"
fit linattn_gdn,linattn_kda,linattn_mamba2,mhc "$kernels" "$main" "$@"
fit gemm,attention_prefill,attention_decode "$kernels/trtllm" "$database (TensorRT-LLM campaign), $licence" "$@"
fit gemm,conv,norm,activation,softmax,elementwise \
  "${eager}matmul.csv.gz,${eager}conv.csv.gz,${eager}vector.csv.gz,data/measured_eager/kernels_matmul.csv,data/measured_eager/kernels_conv.csv,data/measured_eager/kernels_vector.csv" \
  "NeuSight (github.com/sitar-lab/NeuSight), commit 6945927, and our own H200 (data/measured_eager): fp32 kernels" "$@"
fit gemm,moe "$FORETOKEN_DATA/amd,data/measured_hipblaslt/fitted" \
  "ROCm/aiter, tuned configuration tables, commit e4048607a5 (2026-08-22), four fifths of the shapes; AMD's hipBLASLt tables in MLPerf Inference v5.1" "$@"
# Measured on one GPU: DeepGEMM's grouped kernels, the backward pass of attention, sparse products.
fit moe,attention_backward "$own" "foretoken's own measurements (data/measured)" "$@"
fit spmm,sddmm data/measured_sparse/fitted \
  "cuSPARSE through PyTorch 2.11 (CUDA 13.0) on an H200, data/measured_sparse/fitted" "$@"
