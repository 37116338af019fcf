#include "app/endpoint/answer_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/endpoint/tokens.h"
#include "base/random.h"

namespace foretoken {
namespace {

constexpr int deepest_addition = 24;  // levels: below, only what the schema requires is written
constexpr int64_t added_text = 11;    // bytes: three words
constexpr uint64_t most_added_items = 3;

class DocumentWriter {
 public:
  DocumentWriter(const AnswerSchema& schema, uint64_t key, int64_t bytes)
      : schema_(&schema),
        stream_(key, "document"),
        key_(key),
        slack_(std::max<int64_t>(0, bytes - schema.shortest_bytes())) {}

  AnswerDocument write() {
    add(0, 0);
    AnswerDocument document{.room = room_};
    const bool has_bracket = text_.back() == '}' || text_.back() == ']';
    const size_t end = text_.size() - (has_bracket ? 1 : 0);
    const size_t place = room_ > 0 ? place_ : end;
    document.head = text_.substr(0, place);
    document.middle = text_.substr(place, end - place);
    document.tail = text_.substr(end);
    return document;
  }

 private:
  // Whether so many bytes more than required may be written at this depth; if so, they are.
  bool take(int64_t bytes, int depth) {
    if (bytes > slack_ || (bytes > 0 && depth > deepest_addition)) return false;
    slack_ -= bytes;
    return true;
  }

  void add(size_t index, int depth) {
    const SchemaNode& node = schema_->nodes[index];
    switch (node.kind) {
      case SchemaKind::never:
        return;  // never asked for
      case SchemaKind::literal:
        return add_literal(node, depth);
      case SchemaKind::number:
        return add_number(node, depth);
      case SchemaKind::text:
        return add_text(node);
      case SchemaKind::array:
        return add_array(node, depth);
      case SchemaKind::object:
        return add_object(node, depth);
      case SchemaKind::alternatives: {
        const size_t drawn = node.children[stream_.below(node.children.size())];
        const bool drawn_fits = depth <= deepest_addition && take(schema_->nodes[drawn].bytes - node.bytes, depth);
        return add(drawn_fits ? drawn : node.shortest, depth + 1);
      }
    }
  }

  void add_literal(const SchemaNode& node, int depth) {
    const std::string& drawn = node.literals[stream_.below(node.literals.size())];
    text_ += take(static_cast<int64_t>(drawn.size()) - node.bytes, depth) ? drawn : node.literals.front();
  }

  void add_number(const SchemaNode& node, int depth) {
    const auto steps = static_cast<int64_t>(stream_.below(static_cast<uint64_t>(node.steps) + 1));
    const std::string drawn = node.steps > 0 ? fmt::format("{}", node.first + node.step * steps) : node.shortest_number;
    text_ += take(static_cast<int64_t>(drawn.size()) - node.bytes, depth) ? drawn : node.shortest_number;
  }

  void add_text(const SchemaNode& node) {
    const int64_t more = std::min({added_text, slack_, node.most - node.least});
    slack_ -= more;
    const int64_t length = node.least + more;
    text_ += '"';
    // Words begin with a space: left out here.
    const auto words = length / static_cast<int64_t>(token_bytes) + 1;
    text_ += answer_text(key_ + text_.size(), 0, words).substr(1, static_cast<size_t>(length));
    if (room_ == 0 && node.most > length) {
      place_ = text_.size();
      room_ = node.most - length;
    }
    text_ += '"';
  }

  void add_array(const SchemaNode& node, int depth) {
    text_ += '[';
    const uint64_t wanted = static_cast<uint64_t>(node.least) + stream_.below(most_added_items + 1);
    for (uint64_t i = 0; i < wanted; ++i) {
      const size_t item = i < node.children.size() ? node.children[i] : node.rest;
      const bool required = i < static_cast<uint64_t>(node.least);
      if (!required && (i >= static_cast<uint64_t>(node.most) || !take_child(item, 1, depth))) break;
      if (i > 0) text_ += ',';
      add(item, depth + 1);
    }
    text_ += ']';
  }

  void add_object(const SchemaNode& node, int depth) {
    int64_t left = node.most;
    for (const SchemaProperty& property : node.properties) left -= property.required ? 1 : 0;
    text_ += '{';
    bool first = true;
    for (const SchemaProperty& property : node.properties) {
      if (!property.required) {
        const auto own = static_cast<int64_t>(property.name.size()) + 2;
        if (left <= 0 || !take_child(property.value, own, depth)) continue;
        --left;
      }
      if (!first) text_ += ',';
      first = false;
      text_.append(property.name).append(1, ':');
      add(property.value, depth + 1);
    }
    text_ += '}';
  }

  bool take_child(size_t child, int64_t own_bytes, int depth) {
    const int64_t bytes = schema_->nodes[child].bytes;
    return bytes < SchemaNode::no_document && take(own_bytes + bytes, depth);
  }

  const AnswerSchema* schema_;
  RandomStream stream_;
  uint64_t key_;
  int64_t slack_;  // bytes beyond the shortest document that are left
  std::string text_;
  size_t place_ = 0;  // of words that make the document longer
  int64_t room_ = 0;
};

}  // namespace

void AnswerDocument::write_over(std::string& words, int64_t first, int64_t whole_bytes) const {
  const int64_t filling = std::max<int64_t>(0, whole_bytes - least_bytes());
  const auto head_end = static_cast<int64_t>(head.size());
  const int64_t middle_begin = head_end + std::min(filling, room);
  const int64_t middle_end = middle_begin + static_cast<int64_t>(middle.size());
  const int64_t tail_begin = middle_end + filling - std::min(filling, room);
  for (size_t i = 0; i < words.size(); ++i) {
    const int64_t at = first + static_cast<int64_t>(i);
    if (at < head_end) {
      words[i] = head[static_cast<size_t>(at)];
    } else if (at >= middle_begin && at < middle_end) {
      words[i] = middle[static_cast<size_t>(at - middle_begin)];
    } else if (at >= middle_end) {
      const auto in_tail = static_cast<size_t>(at - tail_begin);
      words[i] = at >= tail_begin && in_tail < tail.size() ? tail[in_tail] : ' ';
    }
  }
}

AnswerDocument make_answer_document(const AnswerSchema& schema, uint64_t key, int64_t bytes) {
  return DocumentWriter(schema, key, bytes).write();
}

}  // namespace foretoken
