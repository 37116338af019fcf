#include "base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

// Builds the tree from the parser's events: limits are checked before anything grows.
class YamlBuilder : public YAML::EventHandler {
 public:
  YamlBuilder(const std::string& source, const YamlLimits& limits) : source_(source), limits_(limits) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add({.line = line_of(mark)}, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    add({.kind = YamlNode::Kind::scalar,
         .line = line_of(mark),
         .scalar = value,
         .quoted = tag == "!",
         .tag = written_tag(tag)},
        anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(line_of(mark), "an alias of a value that is complete before it");
    count(found->second.weight - weight_of(found->second.node), line_of(mark));  // the rest of it counts in add()
    if (static_cast<int>(open_.size()) + found->second.depth > limits_.max_depth) fail_depth(line_of(mark));
    add(found->second.node, YAML::NullAnchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open({.kind = YamlNode::Kind::sequence, .line = line_of(mark), .tag = written_tag(tag)}, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open({.kind = YamlNode::Kind::map, .line = line_of(mark), .tag = written_tag(tag)}, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool has_key = false;
    std::string key;
    std::set<std::string, std::less<>> keys;
    size_t weight_before = 0;
    int depth = 1;  // of the tree below and with it
  };
  struct Anchored {
    YamlNode node;
    size_t weight = 1;
    int depth = 1;
  };

  // The parser says `?` for a plain value and `!` for a quoted one without a tag.
  static std::string written_tag(const std::string& tag) {
    return tag.size() > 1 && tag.front() == '!' ? tag.substr(1) : "";
  }
  // Long texts count as several values, so that aliases of them are bounded too.
  static size_t weight_of(const YamlNode& node) { return 1 + (node.scalar.size() + node.tag.size()) / 64; }
  static int line_of(const YAML::Mark& mark) { return mark.line + 1; }

  [[noreturn]] void fail(int line, std::string expected, std::string value = "") const {
    throw InputError({.source = source_, .line = line, .value = std::move(value), .expected = std::move(expected)});
  }
  [[noreturn]] void fail_depth(int line) const {
    fail(line, "nesting of at most " + std::to_string(limits_.max_depth) + " levels");
  }

  void count(size_t weight, int line) {
    weight_ += weight;
    if (weight_ <= limits_.max_nodes) return;
    fail(line, "at most " + std::to_string(limits_.max_nodes) + " values, those of aliases included");
  }

  void remember(YAML::anchor_t anchor, Anchored anchored) {
    count(anchored.weight, anchored.node.line);  // what is kept for later takes memory as well
    anchors_[anchor] = std::move(anchored);
  }

  void open(YamlNode node, YAML::anchor_t anchor) {
    if (!open_.empty() && open_.back().node.kind == YamlNode::Kind::map && !open_.back().has_key) {
      fail(node.line, "a key that is a plain value");
    }
    if (static_cast<int>(open_.size()) >= limits_.max_depth) fail_depth(node.line);
    open_.push_back({.node = std::move(node), .anchor = anchor, .weight_before = weight_});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    const size_t weight = weight_ - done.weight_before + 1;
    if (done.anchor != YAML::NullAnchor) {
      remember(done.anchor, {.node = done.node, .weight = weight, .depth = done.depth});
    }
    if (!open_.empty()) open_.back().depth = std::max(open_.back().depth, done.depth + 1);
    add(std::move(done.node), YAML::NullAnchor);
  }

  void add(YamlNode node, YAML::anchor_t anchor) {
    count(weight_of(node), node.line);
    if (anchor != YAML::NullAnchor) remember(anchor, {.node = node, .weight = weight_of(node)});
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.kind == YamlNode::Kind::sequence || node.kind == YamlNode::Kind::map) {
        fail(node.line, "a key that is a plain value");
      }
      if (!parent.keys.insert(node.scalar).second) fail(node.line, "each key once", node.scalar);
      parent.key = std::move(node.scalar);
      parent.has_key = true;
    } else {
      parent.node.keys.push_back(std::move(parent.key));
      parent.node.items.push_back(std::move(node));
      parent.has_key = false;
    }
  }

  const std::string& source_;
  const YamlLimits& limits_;
  YamlNode root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  size_t weight_ = 0;
};

void check_utf8(std::string_view text, const std::string& source) {
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) throw InputError({.source = source, .line = line, .expected = "text in UTF-8"});
    if (text[at] == '\n') ++line;
    at += length;
  }
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<size_t>(found - keys.begin())];
}

YamlNode parse_yaml(std::string_view text, const std::string& source, const YamlLimits& limits) {
  if (text.size() > limits.max_bytes) {
    throw InputError(
        {.source = source, .expected = "a YAML file of at most " + std::to_string(limits.max_bytes) + " bytes"});
  }
  check_utf8(text, source);
  YamlBuilder builder(source, limits);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& error) {
    throw InputError(
        {.source = source, .line = error.mark.is_null() ? 0 : error.mark.line + 1, .expected = "YAML: " + error.msg});
  }
  return builder.take();
}

}  // namespace foretoken
