// What a shard keeps of the operation that is under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "remote/requests.hpp"
#include "remote/shard_server.hpp"
#include "train/boosting_rows.hpp"
#include "update/fresh_gradients.hpp"
#include "update/regrowing_rows.hpp"

namespace graftboost {

// The growths of one operation.
template <class Sums>
struct ShardServer::Growing {
  struct Growth {
    GrowingRows<Sums> rows;
    __int128 squares = 0;
    std::uint64_t n_rows = 0;
    Histogram<Sums> before;
  };

  std::optional<GrowingCells> cells;
  std::unique_ptr<RegrowingRows<Sums>> regrowing;
  std::map<std::uint32_t, Growth> growths;

  void clear() {
    growths.clear();
    regrowing.reset();
    cells.reset();
  }
  Growth& open(std::uint32_t number, const ModelState& model, int n_threads) {
    if (!cells) cells.emplace(GrowingCells::of_layout(model.shards));
    const auto found = growths.find(number);
    if (found != growths.end()) return found->second;
    return growths
        .emplace(number, Growth{GrowingRows<Sums>(model.shards, *cells, n_threads), 0, 0, {}})
        .first->second;
  }
};

struct ShardServer::Work {
  bool is_update = false;  // the shard has saved what it changes
  bool is_refresh = false;
  std::optional<BoostingRows> boosting;
  std::optional<FreshGradients> fresh;
  Growing<PackedSums> packed;
  Growing<WideSums> wide;
  std::map<std::size_t, Tree> replaced;            // trees as they were before
  std::vector<LeafValue> replaced_values;          // likewise, of other trees, in order
  std::optional<std::vector<double>> base_scores;  // likewise
  std::optional<bool> packed_before;               // likewise
  std::vector<std::uint32_t> own_added;  // numbers, among the added rows, of those of this shard
  std::optional<std::vector<std::uint32_t>> layout_at_commit;
  std::vector<Array<double>> terms;  // of scores, per tree of an iteration, during a refresh
  Array<Slot> slots;

  template <class Sums>
  Growing<Sums>& growing() {
    if constexpr (std::is_same_v<Sums, PackedSums>) {
      return packed;
    } else {
      return wide;
    }
  }
};

}  // namespace graftboost
