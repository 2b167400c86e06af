#include <cstdint>
#include <unordered_map>
#include <vector>

#include "data/row_index.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost {
namespace {

using testing::Random;

// Adds and removes rows the way RowTable does: a new row is appended, the last row takes the slot
// of a removed one.
class IndexedIds {
 public:
  explicit IndexedIds(bool build_first) {
    if (build_first) index_.build(ids_);
  }
  void build() { index_.build(ids_); }

  void add(RowId id) {
    if (expected_.contains(id)) return;
    expected_[id] = static_cast<Slot>(ids_.size());
    ids_.push_back(id);
    if (index_.built()) index_.insert(ids_, expected_[id]);
  }
  void remove(std::size_t slot) {
    const std::size_t last = ids_.size() - 1;
    expected_.erase(ids_[slot]);
    index_.erase(ids_, static_cast<Slot>(slot));
    if (slot != last) {
      index_.erase(ids_, static_cast<Slot>(last));
      ids_[slot] = ids_[last];
      expected_[ids_[slot]] = static_cast<Slot>(slot);
      index_.insert(ids_, static_cast<Slot>(slot));
    }
    ids_.resize(last);
  }
  std::size_t size() const { return ids_.size(); }
  void check(RowId id) const {
    const auto found = index_.find(ids_, id);
    const auto expected = expected_.find(id);
    CHECK_EQ(found.has_value(), expected != expected_.end());
    if (found && expected != expected_.end()) CHECK_EQ(*found, expected->second);
  }

 private:
  Array<RowId> ids_;
  RowIndex index_;
  std::unordered_map<RowId, Slot> expected_;
};

TEST_CASE("an empty index finds nothing") {
  const Array<RowId> ids;
  RowIndex index;
  CHECK(!index.built());
  index.build(ids);
  CHECK(index.built());
  CHECK(!index.find(ids, 0));
}

TEST_CASE("an index agrees with std::unordered_map over random additions and removals") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    // Few distinct ids: they are removed and added again. Negative ids are valid too.
    const auto random_id = [&] { return static_cast<RowId>(random.below(400)) - 200; };
    IndexedIds rows(seed % 2 == 0);
    for (int i = 0; i < 50; ++i) rows.add(random_id());
    if (seed % 2 == 1) rows.build();
    for (int i = 0; i < 3000; ++i) {
      const bool grow = random.chance(i < 1500 ? 0.55 : 0.4);
      if (grow || rows.size() == 0) {
        rows.add(random_id());
      } else {
        rows.remove(random.below(rows.size()));
      }
      rows.check(random_id());
    }
    for (RowId id = -210; id < 210; ++id) rows.check(id);
  }
}

}  // namespace
}  // namespace graftboost
