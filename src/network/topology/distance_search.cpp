#include "network/topology/distance_search.h"

#include <algorithm>

namespace foretoken {
namespace {

// What is kept of fields: this many distances per link of the topology.
constexpr int64_t kept_distances_per_link = 64;
constexpr size_t least_kept_fields = 64;

}  // namespace

InputError no_path(const Topology& topology, NetworkNode from, NetworkNode to) {
  return InputError({.source = "topology",
                     .value = topology.name(from) + " to " + topology.name(to),
                     .expected = "a path between the two devices"});
}

DistanceSearch::DistanceSearch(const Topology& topology) : topology_(topology) {
  number_nodes();
  list_searched_links();
  const auto links = static_cast<int64_t>(topology.links().size());
  const int64_t affordable = kept_distances_per_link * links / std::max<int64_t>(1, std::ssize(field_of_));
  most_fields_ = std::max(least_kept_fields, static_cast<size_t>(affordable));
  for (NetworkNode device = 0; device < topology.device_count(); ++device) {
    most_fields_ = std::max(most_fields_, topology.links_into(device).size());  // those of one destination at least
  }
}

DistanceSearch::Neighbours DistanceSearch::neighbours(std::span<const LinkIndex> links, NetworkNode Link::*end) const {
  Neighbours found;
  for (const LinkIndex link : links) {
    const NetworkNode node = topology_.link(link).*end;
    if (!topology_.forwards(node) || node == found.first) continue;
    if (found.count > 0) return {.count = 2, .first = found.first};
    found = {.count = 1, .first = node};
  }
  return found;
}

void DistanceSearch::number_nodes() {
  hangs_off_.resize(static_cast<size_t>(topology_.node_count()), no_node);
  number_.resize(hangs_off_.size(), -1);
  int32_t searched = 0;
  for (NetworkNode node = 0; node < topology_.node_count(); ++node) {
    if (!topology_.forwards(node)) continue;
    const Neighbours out = neighbours(topology_.links_out_of(node), &Link::to);
    const Neighbours in = neighbours(topology_.links_into(node), &Link::from);
    if (out.count == 1 && (in.count == 0 || (in.count == 1 && in.first == out.first))) {
      hangs_off_[static_cast<size_t>(node)] = out.first;
    } else {
      number_[static_cast<size_t>(node)] = searched++;
    }
  }
  field_of_.resize(static_cast<size_t>(searched));
}

void DistanceSearch::list_searched_links() {
  first_in_.reserve(field_of_.size() + 1);
  for (NetworkNode node = 0; node < topology_.node_count(); ++node) {
    if (number_[static_cast<size_t>(node)] < 0) continue;
    first_in_.push_back(static_cast<int32_t>(in_.size()));
    for (const LinkIndex link : topology_.links_into(node)) {
      const int32_t from = number_[static_cast<size_t>(topology_.link(link).from)];
      if (from >= 0) in_.push_back(from);
    }
  }
  first_in_.push_back(static_cast<int32_t>(in_.size()));
}

DistanceSearch::Field& DistanceSearch::field_to(NetworkNode anchor) {
  const size_t number = number_of(anchor);
  std::unique_ptr<Field>& field = field_of_[number];
  if (field) {
    kept_.splice(kept_.end(), kept_, field->kept);
    return *field;
  }
  if (kept_.size() == most_fields_) {
    field_of_[kept_.front()].reset();
    kept_.pop_front();
  }
  field = std::make_unique<Field>();
  field->kept = kept_.insert(kept_.end(), number);
  field->distance.assign(field_of_.size(), not_reached);
  field->distance[number] = 0;
  field->frontier = {static_cast<int32_t>(number)};
  return *field;
}

void DistanceSearch::deepen(Field& field, int32_t depth) {
  while (field.depth < depth && !field.frontier.empty()) {
    ++field.depth;
    next_frontier_.clear();
    for (const int32_t number : field.frontier) {
      const auto i = static_cast<size_t>(number);
      for (auto next = static_cast<size_t>(first_in_[i]); next < static_cast<size_t>(first_in_[i + 1]); ++next) {
        int32_t& distance = field.distance[static_cast<size_t>(in_[next])];
        if (distance != not_reached) continue;
        distance = field.depth;
        next_frontier_.push_back(in_[next]);
      }
    }
    std::swap(field.frontier, next_frontier_);
  }
}

bool DistanceSearch::is_tail(NetworkNode node, size_t first_tail) const {
  return std::any_of(tails_.begin() + static_cast<int64_t>(first_tail), tails_.end(),
                     [&](const Tail& tail) { return tail.node == node; });
}

void DistanceSearch::add_branch(NetworkNode node, int32_t distance) {
  const size_t first = tails_.size();
  tails_.push_back({node, distance});
  while (true) {
    const Neighbours in = neighbours(topology_.links_into(node), &Link::from);
    if (in.count > 1) {
      anchors_.push_back({&field_to(node), distance});
      return;
    }
    if (in.count == 0 || is_tail(in.first, first)) return;  // nothing else leads here
    node = in.first;
    tails_.push_back({node, ++distance});
  }
}

void DistanceSearch::aim_at(NetworkNode destination) {
  if (destination_ == destination) return;
  destination_ = destination;
  tails_.clear();
  anchors_.clear();
  if (topology_.forwards(destination)) {
    add_branch(destination, 0);
    return;
  }
  tails_.push_back({destination, 0});
  ways_in_.clear();
  for (const LinkIndex link : topology_.links_into(destination)) ways_in_.push_back(topology_.link(link).from);
  std::sort(ways_in_.begin(), ways_in_.end());
  ways_in_.erase(std::unique(ways_in_.begin(), ways_in_.end()), ways_in_.end());
  for (const NetworkNode from : ways_in_) {
    if (topology_.forwards(from)) add_branch(from, 1);
  }
}

// Links from `node` to the destination if at most `most`, else not_reached.
int32_t DistanceSearch::distance_within(NetworkNode node, int32_t most) {
  int32_t least = most + 1;
  for (const auto& [tail, distance] : tails_) {
    if (tail == node) least = std::min(least, distance);
  }
  const NetworkNode only_neighbour = hangs_off_[static_cast<size_t>(node)];
  if (only_neighbour != no_node) {
    const int32_t distance = least > 1 ? distance_within(only_neighbour, least - 2) : not_reached;
    if (distance != not_reached) least = distance + 1;
  } else if (topology_.forwards(node)) {
    for (const auto& [field, offset] : anchors_) {
      deepen(*field, least - 1 - offset);
      const int32_t distance = field->distance[number_of(node)];
      if (distance != not_reached) least = std::min(least, distance + offset);
    }
  }
  return least <= most ? least : not_reached;
}

// The search goes no deeper than it must: a neighbour in a ring costs a few steps, however long the ring is.
int32_t DistanceSearch::distance_from(NetworkNode device) {
  const auto no_bound = static_cast<int32_t>(topology_.node_count());
  int32_t most = no_bound;  // as far as all fields were searched before
  for (const auto& [field, offset] : anchors_) most = std::min(most, field->depth + offset);
  for (;; ++most) {
    bool exhausted = true;
    for (const auto& [field, offset] : anchors_) {
      deepen(*field, most - offset);
      exhausted = exhausted && field->frontier.empty();
    }
    int32_t least = exhausted ? no_bound : most;
    bool found = false;
    for (const LinkIndex link : topology_.links_out_of(device)) {
      const int32_t distance = distance_within(topology_.link(link).to, least);
      if (distance == not_reached) continue;
      least = distance;
      found = true;
    }
    if (found) return least + 1;
    if (exhausted) break;
  }
  throw no_path(topology_, device, destination_);
}

// Between the destination and the nearest anchor.
bool DistanceSearch::only_tails_are_nearer(int32_t distance) const {
  return std::all_of(anchors_.begin(), anchors_.end(),
                     [&](const Anchor& anchor) { return anchor.offset >= distance - 1; });
}

void DistanceSearch::find_links_on(NetworkNode node, int32_t distance, std::vector<LinkIndex>& links) {
  links.clear();
  if (only_tails_are_nearer(distance)) {  // few links lead into them
    for (const Tail& tail : tails_) {
      if (tail.distance != distance - 1) continue;
      for (const LinkIndex link : topology_.links_into(tail.node)) {
        if (topology_.link(link).from == node) links.push_back(link);
      }
    }
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
  } else {
    for (const LinkIndex link : topology_.links_out_of(node)) {
      if (leads_on(link, distance)) links.push_back(link);
    }
  }
  ensure(!links.empty(), "a node at a distance has a neighbor that is nearer");
}

}  // namespace foretoken
