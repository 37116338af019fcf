#include "kernel/calibration_pack.h"

#include <algorithm>
#include <bit>
#include <fstream>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "kernel/calibration_files.h"

namespace foretoken {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view magic = "foretoken calibrations";
// Raise it with every change of what is written below.
constexpr uint32_t layout = 2;
constexpr uint64_t most_entries = 100'000;
constexpr size_t most_bytes_in_an_entry = size_t{64} << 20;
constexpr size_t entry_bytes = 4 * sizeof(uint64_t);
constexpr size_t header_bytes = sizeof(uint64_t) + magic.size() + sizeof layout + 2 * sizeof(uint64_t);

// Most leaves are zero and nearly all others fit a byte. So there is a bit for each leaf that says whether it is not
// zero, a byte for each that is not, and two more bytes for each where that byte is this mark.
constexpr int8_t wide_leaf = -128;

void put_leaves(ByteWriter& out, const std::vector<int16_t>& leaves) {
  std::vector<uint8_t> masks((leaves.size() + 7) / 8);
  ByteWriter narrow, wide;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i] == 0) continue;
    masks[i / 8] = static_cast<uint8_t>(masks[i / 8] | 1U << i % 8);
    const bool is_narrow = leaves[i] > wide_leaf && leaves[i] <= 127;
    narrow.put(is_narrow ? static_cast<int8_t>(leaves[i]) : wide_leaf);
    if (!is_narrow) wide.put(leaves[i]);
  }
  out.put(static_cast<uint64_t>(leaves.size()));
  out.put(static_cast<uint64_t>(narrow.bytes().size()));
  out.append(masks);
  out.append(narrow.bytes());
  out.append(wide.bytes());
}

std::vector<int16_t> get_leaves(ByteReader& in) {
  const auto count = in.get<uint64_t>(), narrow_count = in.get<uint64_t>();
  if (count > 8 * in.left()) return {};
  const std::span<const uint8_t> masks = in.take((count + 7) / 8), narrow = in.take(narrow_count);
  std::vector<int16_t> leaves(8 * masks.size());
  size_t read = 0;
  for (size_t group = 0; group < masks.size(); ++group) {
    for (unsigned mask = masks[group]; mask != 0 && read < narrow.size(); mask &= mask - 1, ++read) {
      const auto leaf = static_cast<int8_t>(narrow[read]);
      leaves[8 * group + static_cast<size_t>(std::countr_zero(mask))] =
          leaf == wide_leaf ? in.get<int16_t>() : int16_t{leaf};
    }
  }
  leaves.resize(count);
  return leaves;
}

template <class Archive, class Parts>
void parts(Archive& archive, Parts& smooth) {
  archive(smooth.used);
  archive(smooth.inverse_lengths);
  archive(smooth.group_feature);
  archive(smooth.across);
  archive(smooth.groups);
  archive(smooth.weights);
  archive(smooth.places);
}

// Writer and Reader take the same members in the same order; see `members` below.
class Writer {
 public:
  ByteWriter out;

  void operator()(const std::string& text) { out.put(text); }
  void operator()(double number) { out.put(number); }
  void operator()(float number) { out.put(number); }
  void operator()(size_t number) { out.put(static_cast<uint64_t>(number)); }
  void operator()(uint8_t number) { out.put(number); }
  template <class A, class B>
  void operator()(const std::pair<A, B>& both) {
    (*this)(both.first);
    (*this)(both.second);
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    out.put(static_cast<uint64_t>(list.size()));
    for (const T& item : list) (*this)(item);
  }
  template <class... Options>
  void operator()(const std::map<Options...>& map) {
    out.put(static_cast<uint64_t>(map.size()));
    for (const auto& item : map) (*this)(item);
  }
  void operator()(const HalfWidths& widths) {
    for (const double width : widths.by_time) (*this)(width);
  }
  void operator()(const std::optional<HalfWidths>& widths) {
    out.put(static_cast<uint8_t>(widths ? 1 : 0));
    if (widths) (*this)(*widths);
  }
  void operator()(const BoostedTrees& trees) {
    (*this)(trees.features());
    (*this)(trees.trees().levels);
    (*this)(trees.trees().features);
    (*this)(trees.trees().thresholds);
    put_leaves(out, trees.trees().leaves);
  }
  void operator()(const SmoothResidual& smooth) { parts(*this, smooth.parts()); }
};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : in(bytes) {}
  ByteReader in;
  bool is_sound = true;

  void operator()(std::string& text) { text = in.text(); }
  void operator()(double& number) { number = in.get<double>(); }
  void operator()(float& number) { number = in.get<float>(); }
  void operator()(size_t& number) { number = in.get<uint64_t>(); }
  void operator()(uint8_t& number) { number = in.get<uint8_t>(); }
  template <class A, class B>
  void operator()(std::pair<A, B>& both) {
    (*this)(both.first);
    (*this)(both.second);
  }
  void operator()(std::vector<uint8_t>& list) {
    const std::span<const uint8_t> bytes = in.take(count());
    list.assign(bytes.begin(), bytes.end());
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    list.resize(count());
    for (T& item : list) (*this)(item);
  }
  template <class Key, class Value, class Order>
  void operator()(std::map<Key, Value, Order>& map) {
    for (size_t i = count(); i > 0; --i) {
      std::pair<Key, Value> item;
      (*this)(item);
      map.insert(map.end(), std::move(item));  // written in order
    }
  }
  void operator()(HalfWidths& widths) {
    for (double& width : widths.by_time) (*this)(width);
  }
  void operator()(std::optional<HalfWidths>& widths) {
    if (in.get<uint8_t>() != 0) (*this)(widths.emplace());
  }
  void operator()(BoostedTrees& trees) {
    size_t features = 0;
    SymmetricTrees read;
    (*this)(features);
    (*this)(read.levels);
    (*this)(read.features);
    (*this)(read.thresholds);
    read.leaves = get_leaves(in);
    is_sound = is_sound && !in.ran_over() && !read.flaw(features);
    if (is_sound) trees = BoostedTrees(features, std::move(read));
  }
  void operator()(SmoothResidual& smooth) {
    SmoothResidual::Parts read;
    parts(*this, read);
    constexpr size_t most_features = 256;
    is_sound = is_sound && !in.ran_over() && !SmoothResidual::flaw(read, most_features);
    if (is_sound) smooth = SmoothResidual(std::move(read));
  }

 private:
  // Every item takes a byte at least.
  size_t count() {
    const auto items = in.get<uint64_t>();
    is_sound = is_sound && items <= in.left();
    return is_sound ? items : 0;
  }
};

constexpr uint8_t kind_of(const FormCalibration&) {
  return 1;
}
constexpr uint8_t kind_of(const DeviceCalibration&) {
  return 2;
}

// Everything that a calibration holds. `Calibration` is const when it is written.
template <class Archive, class Calibration>
requires std::is_same_v<std::remove_const_t<Calibration>, FormCalibration>
void members(Archive& archive, Calibration& calibration) {
  archive(calibration.form);
  archive(calibration.source);
  archive(calibration.fitted_on);
  archive(calibration.devices);
  archive(calibration.constants);
  archive(calibration.effects);
  archive(calibration.residual);
  archive(calibration.residual_strength);
  archive(calibration.half_widths);
  archive(calibration.withheld_mape);
  archive(calibration.withheld_mape_20us);
  archive(calibration.withheld_coverage);
  archive(calibration.sibling_half_widths);
}

template <class Archive, class Calibration>
requires std::is_same_v<std::remove_const_t<Calibration>, DeviceCalibration>
void members(Archive& archive, Calibration& calibration) {
  archive(calibration.form);
  archive(calibration.device);
  archive(calibration.source);
  archive(calibration.fitted_on);
  archive(calibration.rows);
  archive(calibration.constants);
  archive(calibration.groups);
  archive(calibration.shared);
  archive(calibration.ranges);
  archive(calibration.residual);
  archive(calibration.smooth);
  archive(calibration.half_widths);
  archive(calibration.width_factors);
  archive(calibration.layers);
  archive(calibration.unseen_layer_factor);
  archive(calibration.held_out_mape);
  archive(calibration.held_out_mape_20us);
  archive(calibration.held_out_coverage);
}

template <class Calibration>
std::vector<uint8_t> packed(const Calibration& calibration) {
  Writer writer;
  writer(kind_of(calibration));
  members(writer, calibration);
  return writer.out.bytes();
}

bool is_consistent(const FormCalibration&) {
  return true;
}
bool is_consistent(const DeviceCalibration& calibration) {
  return !SmoothResidual::flaw(calibration.smooth.parts(), calibration.residual.features());
}

template <class Calibration>
std::optional<Calibration> unpacked(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  Calibration calibration;
  uint8_t kind = 0;
  reader(kind);
  if (kind != kind_of(calibration)) return std::nullopt;
  members(reader, calibration);
  if (!reader.is_sound || reader.in.ran_over() || reader.in.left() > 0) return std::nullopt;
  if (!is_consistent(calibration)) return std::nullopt;
  return calibration;
}

// Empty when the file does not hold as many there.
std::vector<uint8_t> bytes_at(const fs::path& path, uint64_t offset, uint64_t size) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes(size);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) bytes.clear();
  return bytes;
}

}  // namespace

CalibrationPack::CalibrationPack(fs::path file) : file_(std::move(file)) {
  const std::vector<uint8_t> header = bytes_at(file_, 0, header_bytes);
  ByteReader reader(header);
  if (reader.text() != magic || reader.get<uint32_t>() != layout) return;
  const auto count = reader.get<uint64_t>(), expected = reader.get<uint64_t>();
  if (count > most_entries) return;
  const std::vector<uint8_t> table = bytes_at(file_, header_bytes, count * entry_bytes);
  if (digest(table) != expected) return;
  ByteReader entries(table);
  for (uint64_t i = 0; i < count; ++i) {
    Entry entry;
    for (uint64_t* member : {&entry.source, &entry.offset, &entry.size, &entry.content})
      *member = entries.get<uint64_t>();
    entries_.push_back(entry);
  }
}

template <class Calibration>
std::optional<Calibration> CalibrationPack::find(std::span<const uint8_t> json_file) const {
  if (entries_.empty()) return std::nullopt;
  const uint64_t source = digest(json_file);
  const auto entry = std::lower_bound(entries_.begin(), entries_.end(), source,
                                      [](const Entry& a, uint64_t wanted) { return a.source < wanted; });
  if (entry == entries_.end() || entry->source != source || entry->size > most_bytes_in_an_entry) return std::nullopt;
  const std::vector<uint8_t> bytes = bytes_at(file_, entry->offset, entry->size);
  if (digest(bytes) != entry->content) return std::nullopt;
  return unpacked<Calibration>(bytes);
}

std::optional<FormCalibration> CalibrationPack::form(std::span<const uint8_t> json_file) const {
  return find<FormCalibration>(json_file);
}

std::optional<DeviceCalibration> CalibrationPack::device(std::span<const uint8_t> json_file) const {
  return find<DeviceCalibration>(json_file);
}

std::vector<uint8_t> pack_calibrations(const fs::path& folder) {
  std::map<uint64_t, std::vector<uint8_t>> by_source;
  const auto digest_of = [](const fs::path& file) { return digest(read_raw_file(file, most_bytes_in_an_entry)); };
  const CalibrationFiles files = calibration_files(folder);
  for (const fs::path& file : files.forms) by_source[digest_of(file)] = packed(read_form_calibration(file));
  for (const fs::path& file : files.devices) by_source[digest_of(file)] = packed(read_device_calibration(file));
  ByteWriter table, content;
  const size_t first = header_bytes + by_source.size() * entry_bytes;
  for (const auto& [source, bytes] : by_source) {
    const CalibrationPack::Entry entry{
        .source = source, .offset = first + content.bytes().size(), .size = bytes.size(), .content = digest(bytes)};
    for (const uint64_t member : {entry.source, entry.offset, entry.size, entry.content}) table.put(member);
    content.append(bytes);
  }
  ByteWriter file;
  file.put(magic);
  file.put(layout);
  file.put(static_cast<uint64_t>(by_source.size()));
  file.put(digest(table.bytes()));
  ensure(file.bytes().size() == header_bytes, "the header is as long as it says");
  file.append(table.bytes());
  file.append(content.bytes());
  return file.bytes();
}

}  // namespace foretoken
