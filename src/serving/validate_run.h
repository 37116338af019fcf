// Replays a measured run of an engine, request by request, and says how far off each one is.
#pragma once

#include <filesystem>
#include <string>

#include "base/validation.h"
#include "compose/device_models.h"
#include "compose/stack.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken {

struct RunValidationRequest {
  // meta.json (model, engine_kwargs, kv_cache, hardware) and requests.csv (request_id, input_tokens, output_tokens,
  // arrival_client_s, queued_s, first_token_s, last_token_s); prefix blocks from workload_*.csv beside the folder.
  std::filesystem::path folder;
  std::filesystem::path op_tables;  // measured operators; empty = our own kernels
  std::string device;               // empty = as meta.json says
  bool own_blocks = false;          // KV blocks from first principles even where meta.json gives them
};

// Groups ttft_ms, tpot_ms and e2e_ms over requests, counted from when the engine queued them; notes say what the whole
// run came to.
Validation validate_run(const RunValidationRequest& request, const HardwareCatalogue& hardware,
                        const ModelCatalogue& models, const StackCatalogue& stacks,
                        const DeviceModelMaker& make_models);

}  // namespace foretoken
