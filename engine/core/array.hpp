// A growable array of plain values that is not filled on creation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "core/wiping.hpp"

namespace graftboost {

// Elements to leave room for in an array per row, so that the first rows that are added move nothing.
// Memory that is not touched costs nothing.
inline std::size_t room_to_grow(std::size_t n_rows) { return n_rows / 64 + 64; }

// Owns its memory, or has it lent by somebody who keeps it as long as it is referred to: a model that is
// read from a file works on the file's own pages. Elements past what was written are indeterminate.
//
// No stale copy of an element survives: not when the array grows, shrinks, is assigned to or destroyed.
// Past its size there is memory that was never written, or was wiped. Large arrays grow through realloc,
// which moves their pages, not bytes: adding a row to a model of gigabytes stays cheap.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  explicit Array(std::size_t size) { resize(size); }
  // Lent: there is room for `capacity` elements, of which `size` are there.
  Array(T* data, std::size_t size, std::size_t capacity, std::shared_ptr<const void> lender)
      : data_(data), size_(size), capacity_(capacity), lender_(std::move(lender)) {}
  Array(const Array& other) {
    resize(other.size_);
    if (size_ != 0) std::memcpy(data_, other.data_, size_ * sizeof(T));
  }
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array other) noexcept {
    swap(other);
    return *this;
  }
  ~Array() {
    if (lender_) return;
    wipe();
    std::free(data_);
  }

  void swap(Array& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    lender_.swap(other.lender_);
  }

  // Grows by an eighth at least once it has been filled, so that appending is cheap. Shrinking does not
  // move anything and cannot fail.
  void resize(std::size_t size) {
    if (size > capacity_) move_to(capacity_ == 0 ? size : size + capacity_ / 8);
    if (size < size_) graftboost::wipe(data_ + size, (size_ - size) * sizeof(T));
    size_ = size;
  }
  // Room for so many without moving; the memory is not touched before it is used.
  void reserve(std::size_t capacity) {
    if (capacity > capacity_) move_to(capacity_ == 0 ? capacity : capacity + capacity_ / 8);
  }
  void push_back(T value) {
    if (size_ == capacity_) move_to(size_ + size_ / 2 + 16);
    data_[size_++] = value;
  }
  void fill(T value) {
    for (std::size_t i = 0; i < size_; ++i) data_[i] = value;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  void wipe() { graftboost::wipe(data_, size_ * sizeof(T)); }

 private:
  // Above this, malloc maps pages of their own for an array, whatever it has learned to do below.
  static constexpr std::size_t least_mapped_bytes = std::size_t{64} << 20;

  void move_to(std::size_t capacity) {
    if (capacity > PTRDIFF_MAX / sizeof(T)) throw std::bad_alloc();
    const bool mapped = !lender_ && capacity_ * sizeof(T) >= least_mapped_bytes;
    void* to = mapped ? std::realloc(static_cast<void*>(data_), capacity * sizeof(T))
                      : std::malloc(capacity * sizeof(T));
    if (to == nullptr) throw std::bad_alloc();
    if (!mapped && data_ != nullptr) {
      if (size_ != 0) std::memcpy(to, data_, size_ * sizeof(T));
      wipe();
      if (!lender_) std::free(data_);
    }
    lender_.reset();
    data_ = static_cast<T*>(to);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::shared_ptr<const void> lender_;  // none: the memory is its own
};

}  // namespace graftboost
