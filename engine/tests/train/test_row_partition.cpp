#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "tests/check.hpp"
#include "tests/train/encoded_rows.hpp"
#include "train/growing_rows.hpp"
#include "train/row_partition.hpp"

namespace graftboost {
namespace {

using testing::EncodedRows;
using testing::ModelOptions;
using testing::Random;
using testing::random_split;

// Splits nodes at random and compares each with a naive partition. Rows of a node that is split
// stay with its children.
void check_partitions(const RowTable& rows, const ActiveEntries& entries, int n_threads,
                      double share, Random& random) {
  RowPartition partition(rows, entries, n_threads);
  const CodeLayout& layout = rows.layout;
  for (int tree = 0; tree < 2; ++tree) {
    std::vector<std::vector<Slot>> nodes(1);
    for (Slot row = 0; row < rows.size(); ++row)
      if (random.chance(share)) nodes[0].push_back(row);
    // As callers do that do not know how many rows there are.
    Slot* slots = partition.start(rows.size());
    std::copy(nodes[0].begin(), nodes[0].end(), slots);
    partition.start(nodes[0].size());
    std::set<NodeIndex> leaves{0};
    for (std::size_t i = 0; i < layout.size(); ++i) {
      auto leaf = leaves.begin();
      std::advance(leaf, static_cast<std::ptrdiff_t>(random.below(leaves.size())));
      // The largest node, half of the time.
      if (random.chance(0.5)) {
        leaf = std::ranges::max_element(
            leaves, {}, [&](NodeIndex n) { return nodes[static_cast<std::size_t>(n)].size(); });
      }
      const NodeIndex parent = *leaf;
      leaves.erase(leaf);
      const Split split = random_split(layout[i], random);
      const auto left = static_cast<NodeIndex>(nodes.size());
      partition.split(parent, split, left, left + 1);
      nodes.resize(nodes.size() + 2);
      for (const Slot row : nodes[static_cast<std::size_t>(parent)]) {
        const bool goes_left = split.goes_left(rows.code(row, split.feature));
        nodes[static_cast<std::size_t>(left) + (goes_left ? 0 : 1)].push_back(row);
      }
      leaves.insert({left, left + 1});
      for (const NodeIndex n : leaves)
        CHECK(std::ranges::equal(partition.rows_of(n), nodes[static_cast<std::size_t>(n)]));
    }
  }
}

void check_all_forms(const ModelOptions& options, std::size_t n_rows, double share) {
  Random random(1);
  const EncodedRows encoded(options, n_rows, 1);
  const RowTable& rows = encoded.shards[0].rows;
  const GrowingCells of_layout = GrowingCells::of_layout(encoded.shards);
  const GrowingCells of_rows = GrowingCells::of_rows(encoded.shards);
  for (const int n_threads : {1, 3}) {
    check_partitions(rows, of_layout.entries(0), n_threads, share, random);
    check_partitions(rows, of_rows.entries(0), n_threads, share, random);
  }
}

TEST_CASE("rows are sent left and right in their order, by features of all kinds") {
  ModelOptions mixed, wide, sparse;
  wide.max_bins = 1024;
  sparse.many_columns = true;
  for (const ModelOptions& options : {mixed, wide, sparse}) {
    check_all_forms(options, 400, 1);
    check_all_forms(options, 400, 0.5);
  }
}

TEST_CASE("many rows are sent left and right by several threads") {
  ModelOptions mixed, sparse;
  sparse.many_columns = true;
  for (const ModelOptions& options : {mixed, sparse}) check_all_forms(options, 9000, 0.95);
}

}  // namespace
}  // namespace graftboost
