#include "update/histogram_budget.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace graftboost {

template <class Sums>
void trim_histograms(const ModelState& model, const Tree& tree, TreeHistograms<Sums>& histograms) {
  const std::size_t share =
      model.histogram_memory / std::max<std::size_t>(model.n_trees_meant(), 1);
  std::size_t all = 0;
  for (const NodeHistogram<Sums>& histogram : histograms) all += histogram.bytes();
  if (all <= share) return;
  std::vector<std::size_t> nodes(histograms.size());
  std::iota(nodes.begin(), nodes.end(), std::size_t{0});
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::size_t a, std::size_t b) {
    return tree.nodes[a].sums.n > tree.nodes[b].sums.n;
  });
  std::size_t used = 0;
  for (const std::size_t i : nodes) {
    if (!histograms[i].cached) continue;
    if (histograms[i].bytes() > share - used) {
      histograms[i] = {};
    } else {
      used += histograms[i].bytes();
    }
  }
}

template void trim_histograms(const ModelState&, const Tree&, TreeHistograms<PackedSums>&);
template void trim_histograms(const ModelState&, const Tree&, TreeHistograms<WideSums>&);

}  // namespace graftboost
