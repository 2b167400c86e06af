// A growable array of plain values that leaves no copy of its elements behind.
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

// The number of elements to reserve beyond n_rows in an array with one element per row, so that the
// first added rows do not move it. Memory that was never written takes no pages.
inline std::size_t room_to_grow(std::size_t n_rows) { return n_rows / 64 + 64; }

// Owns its memory, or borrows it from a lender that keeps it valid: a model that is loaded from a
// file works on the pages of the file. New elements are indeterminate until they are written.
//
// No stale copy of an element survives when the array grows, shrinks, is assigned to or is
// destroyed. The memory past its size was never written or has been wiped. Borrowed memory is wiped
// when the array moves out of it, and otherwise belongs to the lender. Large arrays grow through
// realloc, which moves pages instead of copying bytes, so that adding a row to a model of several
// gigabytes is cheap.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  explicit Array(std::size_t size) { resize(size); }
  // Borrows memory for `capacity` elements, of which the first `size` are in use. The array refers
  // to the lender as long as it uses the memory.
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

  // An array that has to move leaves room for an eighth more, so that appending is cheap. Shrinking
  // neither moves nor fails, and wipes the elements that are dropped.
  void resize(std::size_t size) {
    if (size > capacity_) move_to(capacity_ == 0 ? size : size + capacity_ / 8);
    if (size < size_) graftboost::wipe(data_ + size, (size_ - size) * sizeof(T));
    size_ = size;
  }
  // Makes room for this many elements without moving later. The memory is not touched before it is
  // used.
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
  // From this size on, malloc always maps separate pages for an array. Below, it adapts the size
  // from which it does so.
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
  std::shared_ptr<const void> lender_;  // null if the array owns its memory
};

}  // namespace graftboost
