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
  for (std::size_t b = home_of(id); table_[b] != empty; b = next(b)) {
    if (ids[table_[b]] == id) return table_[b];
  }
  return std::nullopt;
}

void RowIndex::put(RowId id, Slot slot) {
  std::size_t b = home_of(id);
  while (table_[b] != empty) b = next(b);
  table_[b] = slot;
}

void RowIndex::insert(const Array<RowId>& ids, Slot slot) {
  if (2 * (n_ + 1) > table_.size()) {
    Array<Slot> old(2 * table_.size());
    old.fill(empty);
    old.swap(table_);
    for (const Slot s : old)
      if (s != empty) put(ids[s], s);
  }
  put(ids[slot], slot);
  ++n_;
}

// Slots that a collision had moved past the freed bucket move back into it, one after the other,
// until the next empty bucket.
void RowIndex::erase(const Array<RowId>& ids, Slot slot) {
  std::size_t hole = home_of(ids[slot]);
  while (table_[hole] != slot) hole = next(hole);
  for (std::size_t b = next(hole); table_[b] != empty; b = next(b)) {
    const std::size_t home = home_of(ids[table_[b]]);
    const std::size_t mask = table_.size() - 1;
    if (((b - home) & mask) >= ((b - hole) & mask)) {
      table_[hole] = table_[b];
      hole = b;
    }
  }
  table_[hole] = empty;
  --n_;
}

}  // namespace graftboost
