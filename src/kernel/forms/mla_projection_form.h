// The absorb multiplies around latent decode: one small matrix multiply per head.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_mla_projection_form(Caches caches);

}  // namespace foretoken
