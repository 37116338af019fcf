// Layers of our lists as MAESTRO would write them.
#pragma once

#include "accelerator/dataflow/dataflow_layer.h"
#include "accelerator/workload/network_layer.h"

namespace foretoken {

// With its padding as rows and columns of the input, without those that no window covers. A batch of products is a BMM,
// a convolution of groups NGCONV, or DSCONV where every channel is a group of its own. InputError for dilation.
DataflowLayer dataflow_layer(const NetworkLayer& layer);

}  // namespace foretoken
