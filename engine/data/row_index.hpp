// From the users' row ids to the engine's slots.
#pragma once

#include <cstdint>
#include <optional>

#include "core/array.hpp"
#include "core/hashing.hpp"
#include "core/types.hpp"

namespace graftboost {

// An open-addressed table of slots; the ids themselves stay where they are, in RowTable. Built when first
// asked for, kept up to date from then on.
class RowIndex {
 public:
  bool built() const { return !table_.empty(); }
  void build(const Array<RowId>& ids);
  std::optional<Slot> find(const Array<RowId>& ids, RowId id) const;
  void insert(const Array<RowId>& ids, Slot slot);
  // Before the slot's id changes.
  void erase(const Array<RowId>& ids, Slot slot);

 private:
  static constexpr Slot empty = ~Slot{0};

  std::size_t place_of(RowId id) const {
    return static_cast<std::size_t>(mix(static_cast<std::uint64_t>(id))) & (table_.size() - 1);
  }
  std::size_t next(std::size_t place) const { return (place + 1) & (table_.size() - 1); }

  Array<Slot> table_;
  std::size_t n_ = 0;
};

}  // namespace graftboost
