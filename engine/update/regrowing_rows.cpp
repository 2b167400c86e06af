#include "update/regrowing_rows.hpp"

#include <algorithm>
#include <numeric>

#include "core/parallel.hpp"

namespace graftboost {

template <class Sums>
std::vector<ReachingRows> RegrowingRows<Sums>::find(std::size_t t,
                                                    const std::vector<std::int32_t>& leaves) {
  std::vector<ReachingRows> found;
  for (std::size_t s = 0; s < model_.shards.size(); ++s) {
    RowShard& shard = model_.shards[s];
    const auto [inside, outside] = shard.rows_in(t, leaves, model_.params, slots_[s]);
    found.push_back({shard.save_rows(t, inside), shard.save_rows(t, outside)});
  }
  return found;
}

template <class Sums>
typename RegrowingRows<Sums>::Started RegrowingRows<Sums>::start(
    std::size_t t, const std::vector<ReachingRows>& reaching, GrowingRows<Sums>& rows,
    Histogram<Sums>& before) {
  Started started;
  rows.begin(t, model_.loss.kind);
  for (std::size_t s = 0; s < model_.shards.size(); ++s) {
    const RowShard& shard = model_.shards[s];
    const auto [inside, outside] = reaching[s];
    if (!before.empty())
      accumulate(shard.rows, shard.recorded_in(t, model_.loss.kind), inside, before.data());
    started.more_squares += record_fresh(t, s, inside);
    std::copy(inside.begin(), inside.end(), rows.start(s, inside.size()));
    if (model_.params.subsample < 1)
      std::copy(outside.begin(), outside.end(), rows.start_outside(s, outside.size()));
    started.n_rows += inside.size();
  }
  return started;
}

template <class Sums>
__int128 RegrowingRows<Sums>::record_fresh(std::size_t t, std::size_t s,
                                           std::span<const Slot> slots) {
  RowShard& shard = model_.shards[s];
  const RecordedGradients recorded = shard.recorded_in(t, model_.loss.kind);
  constexpr std::size_t rows_together = 2048;
  std::vector<__int128> more_squares(slots.size() / rows_together + 1);
  const auto record = [&](std::span<const Slot> block, __int128& more) {
    GradientArray fresh = fresh_.of(t, s, block);
    shard.trees[t].recorded.visit([&]<class Element>(Element* to) {
      const Element* from = fresh.of<Element>();
      for (std::size_t i = 0; i < block.size(); ++i) {
        more -= recorded.square_of(block[i]);
        to[block[i]] = from[i];
        more += recorded.square_of(block[i]);
      }
    });
  };
  parallel_blocks(n_threads_, slots.size(), rows_together, [&](std::size_t begin, std::size_t end) {
    record(slots.subspan(begin, end - begin), more_squares[begin / rows_together]);
  });
  return std::accumulate(more_squares.begin(), more_squares.end(), static_cast<__int128>(0));
}

template <class Sums>
void RegrowingRows<Sums>::place(std::size_t t, const GrowingRows<Sums>& rows,
                                std::span<const NodeIndex> nodes,
                                std::span<const std::int32_t> leaf_ids) {
  for (std::size_t s = 0; s < model_.shards.size(); ++s) {
    model_.shards[s].trees[t].leaf_ids.visit([&]<class LeafId>(LeafId* of_rows) {
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto id = static_cast<LeafId>(leaf_ids[i]);
        for (const Slot row : rows.rows_of(s, nodes[i])) of_rows[row] = id;
        for (const Slot row : rows.outside_of(s, nodes[i])) of_rows[row] = id;
      }
    });
  }
}

template <class Sums>
void RegrowingRows<Sums>::merge_leaves(std::size_t t, std::int32_t from, std::int32_t to) {
  for (std::size_t s = 0; s < model_.shards.size(); ++s)
    model_.shards[s].merge_leaves(t, from, to, slots_[s]);
}

template class RegrowingRows<PackedSums>;
template class RegrowingRows<WideSums>;

}  // namespace graftboost
