// What the node half and shards in other processes send each other: numbers, as bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/array.hpp"
#include "core/wiping.hpp"

namespace graftboost {

// Rows travel in messages, so their memory is wiped.
using Bytes = WipedVector<std::uint8_t>;

// Appends numbers, and lists of numbers with their lengths, to a message.
class Writer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  Writer& put(const T& value) {
    append(&value, sizeof(T));
    return *this;
  }
  template <class List>
  Writer& put_all(const List& list) {
    using T = std::remove_cvref_t<decltype(*list.data())>;
    static_assert(std::is_trivially_copyable_v<T>);
    put(static_cast<std::uint64_t>(list.size()));
    append(list.data(), list.size() * sizeof(T));
    return *this;
  }

  const Bytes& bytes() const { return bytes_; }
  Bytes take() { return std::exchange(bytes_, {}); }
  bool empty() const { return bytes_.empty(); }

 private:
  void append(const void* from, std::size_t n) {
    if (n == 0) return;
    const auto* first = static_cast<const std::uint8_t*>(from);
    bytes_.insert(bytes_.end(), first, first + n);
  }

  Bytes bytes_;
};

// Reads what a Writer wrote. Throws std::invalid_argument if there is less than is asked for.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : left_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  T get() {
    T value;
    std::memcpy(&value, next(sizeof(T)).data(), sizeof(T));
    return value;
  }
  // A list as a std::vector, a WipedVector or an Array.
  template <class List>
  List get_all() {
    using T = std::remove_cvref_t<decltype(*std::declval<List>().data())>;
    const auto size = get<std::uint64_t>();
    if (size > left_.size() / sizeof(T)) throw_cut_off();
    List list(static_cast<std::size_t>(size));
    const auto bytes = next(static_cast<std::size_t>(size) * sizeof(T));
    if (size != 0) std::memcpy(list.data(), bytes.data(), bytes.size());
    return list;
  }
  std::span<const std::uint8_t> next(std::size_t n) {
    if (n > left_.size()) throw_cut_off();
    const auto taken = left_.first(n);
    left_ = left_.subspan(n);
    return taken;
  }
  bool at_end() const { return left_.empty(); }

 private:
  [[noreturn]] static void throw_cut_off() {
    throw std::invalid_argument("a message between the node half and a shard is cut off");
  }

  std::span<const std::uint8_t> left_;
};

// The answer of one shard to a message. The sums of several shards are added up, number by number,
// modulo 2^64. What they say of single rows is not combined.
struct Reply {
  WipedVector<std::uint64_t> sums;
  Bytes rows;
};

// Fulfils the requests of a message (see Rounds) one after the other, by calls of
// fulfil(kind, request, rows). What it writes to `rows` is the answer to that request. The
// memory of the reply is used again.
template <class Kind, class Fulfil>
void answer_message(std::span<const std::uint8_t> message, Reply& reply, Fulfil&& fulfil) {
  Reader reader(message);
  reply.sums.clear();
  Writer all_rows;
  while (!reader.at_end()) {
    const auto kind = reader.get<Kind>();
    const bool asks = reader.get<std::uint32_t>() != 0;
    const auto size = static_cast<std::size_t>(reader.get<std::uint64_t>());
    Reader request(reader.next(size));
    Writer rows;
    fulfil(kind, request, rows);
    if (asks) all_rows.put_all(rows.bytes());
  }
  reply.rows = all_rows.take();
}

// The combined answers of all shards.
struct Replies {
  WipedVector<std::uint64_t> sums;
  std::vector<Bytes> rows;  // per shard
};

// A 128-bit number as two numbers that can be added up one by one.
inline void put_wide(WipedVector<std::uint64_t>& sums, __int128 value) {
  sums.push_back(static_cast<std::uint32_t>(value));
  sums.push_back(static_cast<std::uint64_t>(static_cast<std::int64_t>(value >> 32)));
}
inline __int128 get_wide(const std::uint64_t* two) {
  return (static_cast<__int128>(static_cast<std::int64_t>(two[1])) << 32) + two[0];
}

}  // namespace graftboost
