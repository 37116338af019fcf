#include "kernel/call_kinds.h"

namespace foretoken {
namespace {

size_t bucket_of(uint64_t key, std::string_view variant) {
  uint64_t hash = key * 0x9E3779B97F4A7C15U + variant.size();
  for (const char letter : variant) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  return hash >> 58U;
}

}  // namespace

struct CallKinds::Node {
  CallKind kind;
  Node* next = nullptr;
};

CallKinds::~CallKinds() {
  for (std::atomic<Node*>& bucket : buckets_) {
    for (Node* node = bucket.load(); node != nullptr;) {
      const std::unique_ptr<Node> owned(node);
      node = owned->next;
    }
  }
}

const CallKind* CallKinds::find(uint64_t key, std::string_view variant) const {
  // A node never changes once it can be reached.
  for (const Node* node = buckets_[bucket_of(key, variant)].load(std::memory_order_acquire); node != nullptr;
       node = node->next) {
    if (node->kind.key == key && node->kind.variant == variant) return &node->kind;
  }
  return nullptr;
}

const CallKind* CallKinds::keep(CallKind kind) {
  if (count_.fetch_add(1, std::memory_order_relaxed) >= most) {
    count_.store(most, std::memory_order_relaxed);
    return nullptr;
  }
  // Two threads may add the same kind: both are right, and the newer one is found.
  std::atomic<Node*>& bucket = buckets_[bucket_of(kind.key, kind.variant)];
  auto node = std::make_unique<Node>(Node{.kind = std::move(kind)});
  node->next = bucket.load(std::memory_order_relaxed);
  while (!bucket.compare_exchange_weak(node->next, node.get(), std::memory_order_release, std::memory_order_relaxed)) {
  }
  return &node.release()->kind;
}

}  // namespace foretoken
