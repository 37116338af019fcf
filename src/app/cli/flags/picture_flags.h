// The flags of pictures in prompts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/flags/replica_flags.h"
#include "app/cli/grammar/options.h"
#include "library/library.h"
#include "model/vision.h"
#include "serving/load/images.h"
#include "serving/serving_run.h"
#include "serving/stages/encoder_passes.h"
#include "serving/stages/stage_list.h"

namespace foretoken {

struct PictureFlags {
  std::string encoder, encoder_device;
  int64_t per_request = 1, encoder_servers = 0, encoder_batch = 4;
  double share = 1;
  std::vector<std::string> sizes;

  void declare(Options& options);
  // InputError for flags without their feature, or that do not go together. `conversations`: the load's.
  void check_use(const Options& options, bool conversations) const;
  bool given() const { return !encoder.empty(); }
  LoadMaker changed(LoadMaker load, const Library& library) const;
  // Workers of their own, where asked for.
  void add_stage(StageList& stages, const std::string& device, const Library& library) const;
  // Else the engines encode: their steps take longer, and the encoder's weights take blocks from their cache.
  void add_to_engines(std::vector<ReplicaGroup>& groups, const Library& library) const;

 private:
  VisionEncoder read_encoder(const Library& library) const;
};

}  // namespace foretoken
