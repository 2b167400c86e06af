// Rows of random tables in shards, without trees.
#pragma once

#include <cstdint>

#include "model/row_shard.hpp"
#include "tests/models.hpp"

namespace graftboost::testing {

// Rows of a table of the given kind, dealt to so many shards.
struct EncodedRows {
  TrainingRows given;
  std::shared_ptr<const BinMap> bins;
  Shards shards;

  EncodedRows(const ModelOptions& options, std::size_t n_rows, std::uint64_t seed)
      : given(random_rows(options, n_rows, seed)),
        bins(bins_of(given, options)),
        shards(options.n_shards) {
    for (RowShard& shard : shards) shard.rows.layout = CodeLayout(*bins);
    shards.append(*bins, given.sample(), options.loss, 2);
  }
};

// Any split by a feature: an edge with the missing rows on either side, or a category.
inline Split random_split(const FeatureLayout& feature, Random& random) {
  Split split{feature.column, 0, 0};
  if (feature.categorical) {
    split.low = static_cast<Code>(random.below(feature.n_codes));
  } else {
    const auto last = static_cast<Code>(1 + random.below(feature.n_codes - 1));
    split.low = random.chance(0.5) ? 1 : 0;
    split.span = static_cast<Code>(last - split.low);
  }
  return split;
}

}  // namespace graftboost::testing
