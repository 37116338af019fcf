// Work that the threads of this process and other processes do together, each piece once.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plan/store/result_store.h"

namespace foretoken {

// The results of all keys, in their order: from the store, or worked out here by `work` (on thread number `thread` the
// key at place `index`), or waited for while another process works them out. Returns when all are there, so processes
// that ask for the same keys go on together. A key appears once.
// `helps_with`, where there is one: pieces that are worked out here even though another process holds them, rather than
// to wait: those that are shared work themselves, and give the same bytes to anybody.
std::vector<std::string> shared_results(ResultStore& store, std::span<const std::string> keys, unsigned threads,
                                        const std::function<std::string(unsigned thread, size_t index)>& work,
                                        std::function<bool(size_t index)> helps_with = {});

}  // namespace foretoken
