#!/bin/bash
GPUS_PER_NODE=8
DISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes 16)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto
)
TRAINING_ARGS=(
    --tokenizer-type GPT2BPETokenizer
    --micro-batch-size 1
    --global-batch-size 1536
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 16
    --num-layers-per-virtual-pipeline-stage 3
    --sequence-parallel
    --use-distributed-optimizer
    --recompute-granularity full
    --recompute-method uniform
    --recompute-num-layers 1
    --bf16
)
