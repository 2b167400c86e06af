// From the users' row ids to the engine's slots.
#pragma once

#include <cstdint>
#include <optional>

#include "core/array.hpp"
#include "core/hashing.hpp"
#include "core/types.hpp"

namespace graftboost {

// Finds the slot of a row by its id. Owns an open-addressed hash table of slots with linear
// probing; the ids themselves are not copied but read from `ids`, the same array of the RowTable in
// every call.
//
// At most half of the table is used, so that there is always an empty bucket. No bucket between the
// home of an id and the bucket of its slot is empty. The table is built when it is first needed,
// and insert() and erase() keep it up to date from then on. find(), insert() and erase() require
// built().
class RowIndex {
 public:
  bool built() const { return !table_.empty(); }
  void build(const Array<RowId>& ids);
  std::optional<Slot> find(const Array<RowId>& ids, RowId id) const;
  void insert(const Array<RowId>& ids, Slot slot);
  // Must be called before the id of the slot changes.
  void erase(const Array<RowId>& ids, Slot slot);

 private:
  static constexpr Slot empty = ~Slot{0};

  std::size_t home_of(RowId id) const {
    return static_cast<std::size_t>(mix(static_cast<std::uint64_t>(id))) & (table_.size() - 1);
  }
  std::size_t next(std::size_t bucket) const { return (bucket + 1) & (table_.size() - 1); }
  void put(RowId id, Slot slot);

  Array<Slot> table_;  // its size is a power of two
  std::size_t n_ = 0;  // slots in it
};

}  // namespace graftboost
