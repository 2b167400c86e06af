#include "data/row_index.hpp"

#include <bit>

namespace graftboost {

void RowIndex::build(const Array<RowId>& ids) {
  table_.resize(std::bit_ceil(2 * ids.size() + 16));
  table_.fill(empty);
  n_ = 0;
  for (std::size_t slot = 0; slot < ids.size(); ++slot) insert(ids, static_cast<Slot>(slot));
}

std::optional<Slot> RowIndex::find(const Array<RowId>& ids, RowId id) const {
  for (std::size_t p = place_of(id); table_[p] != empty; p = next(p)) {
    if (ids[table_[p]] == id) return table_[p];
  }
  return std::nullopt;
}

void RowIndex::insert(const Array<RowId>& ids, Slot slot) {
  if (2 * (n_ + 1) > table_.size()) {
    Array<Slot> old(2 * table_.size());
    old.fill(empty);
    old.swap(table_);
    for (const Slot s : old) {
      if (s == empty) continue;
      std::size_t p = place_of(ids[s]);
      while (table_[p] != empty) p = next(p);
      table_[p] = s;
    }
  }
  std::size_t p = place_of(ids[slot]);
  while (table_[p] != empty) p = next(p);
  table_[p] = slot;
  ++n_;
}

// Whoever was pushed past the freed place by a collision moves back into it, and so on.
void RowIndex::erase(const Array<RowId>& ids, Slot slot) {
  std::size_t hole = place_of(ids[slot]);
  while (table_[hole] != slot) hole = next(hole);
  for (std::size_t p = next(hole); table_[p] != empty; p = next(p)) {
    const std::size_t home = place_of(ids[table_[p]]);
    const std::size_t mask = table_.size() - 1;
    if (((p - home) & mask) >= ((p - hole) & mask)) {
      table_[hole] = table_[p];
      hole = p;
    }
  }
  table_[hole] = empty;
  --n_;
}

}  // namespace graftboost
