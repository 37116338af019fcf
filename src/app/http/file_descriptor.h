// Owns a file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace foretoken {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() { reset(); }

  void reset() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }
  int get() const { return number_; }

 private:
  int number_ = -1;
};

}  // namespace foretoken
