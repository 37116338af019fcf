// Element-wise operations, activations, softmax and norms in fp32 as a framework's own kernels run them.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_eager_memory_form(Caches caches);

}  // namespace foretoken
