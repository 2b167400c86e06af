#include "data/bundling.hpp"

#include <algorithm>
#include <numeric>

namespace graftboost {
namespace {

constexpr double rows_looked_at = 1 << 14;
constexpr std::size_t most_candidates = 1024;  // conflicts are counted pair by pair

// Features that may be bundled, and which of them a row has.
class Candidates {
 public:
  Candidates(const std::vector<std::uint32_t>& columns, const std::vector<Feature>& features) {
    for (std::uint32_t f = 0; f < features.size(); ++f) {
      const bool fits = BundledCodes(features[f]).n <= most_bundled_codes / 2;
      if (sparse_saving(features[f]) <= 0 || !fits) continue;
      if (features[f].code(0.0) != features[f].common_code) not_zero_commonly_.push_back(size());
      numbers_.push_back(f);
      columns_.add(columns[f]);
      features_.push_back(&features[f]);
    }
  }

  std::size_t size() const { return numbers_.size(); }
  std::size_t n_codes() const {
    std::size_t n = 0;
    for (const Feature* feature : features_) n += feature->n_codes();
    return n;
  }
  std::uint32_t operator[](std::size_t i) const { return numbers_[i]; }

  // Calls with every candidate in which the row differs from the common code.
  template <class Value, class Use>
  void for_each_differing(const DenseTable<Value>& x, std::size_t row, Use&& use) const {
    for (std::size_t i = 0; i < size(); ++i)
      if (differs(i, x.at(row, columns_[i]))) use(i);
  }
  template <class Value, class Use>
  void for_each_differing(const SparseTable<Value>& x, std::size_t row, Use&& use) const {
    x.for_each(row, [&](std::uint32_t column, Value value) {
      const std::uint32_t i = columns_.find(column);
      if (i != ColumnIndex::none && differs(i, value)) use(std::size_t{i});
    });
    for (const std::size_t i : not_zero_commonly_)
      if (x.at(row, columns_[i]) == 0) use(i);
  }

 private:
  template <class Value>
  bool differs(std::size_t i, Value value) const {
    return features_[i]->code(value) != features_[i]->common_code;
  }

  std::vector<std::uint32_t> numbers_;  // in the features
  ColumnIndex columns_;
  std::vector<const Feature*> features_;
  std::vector<std::size_t> not_zero_commonly_;
};

}  // namespace

template <class Table>
void bundle_features(const Table& x, std::span<const RowId> ids, std::uint64_t seed,
                     const std::vector<std::uint32_t>& columns, std::vector<Feature>& features) {
  const Candidates candidates(columns, features);
  const std::size_t n = candidates.size();
  if (n < 2 || n > most_candidates || candidates.n_codes() > x.rows) return;

  std::vector<bool> conflict(n * n);
  std::vector<std::size_t> differing;
  const double share = rows_looked_at / static_cast<double>(x.rows);
  for (std::size_t r = 0; r < x.rows; ++r) {
    const auto id = static_cast<std::uint64_t>(ids.empty() ? static_cast<RowId>(r) : ids[r]);
    if (share < 1 && as_fraction(hash(seed, 0x62756e64, id)) >= share) continue;
    differing.clear();
    candidates.for_each_differing(x, r, [&](std::size_t i) { differing.push_back(i); });
    for (const std::size_t i : differing) {
      for (const std::size_t j : differing) conflict[i * n + j] = true;
    }
  }

  // Each feature joins a bundle in which it conflicts with nobody and still has room: the one before
  // it if it can, for neighbours are mostly columns of one category.
  std::vector<std::vector<std::size_t>> bundles;
  std::vector<std::uint32_t> n_codes;
  std::size_t b = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t wanted = BundledCodes(features[candidates[i]]).n;
    const auto can_join = [&](std::size_t bundle) {
      return bundle < bundles.size() && n_codes[bundle] + wanted <= most_bundled_codes &&
             std::ranges::none_of(
                 bundles[bundle], [&](std::size_t j) { return conflict[i * n + j]; });
    };
    if (!can_join(b)) {
      b = 0;
      while (b < bundles.size() && !can_join(b)) ++b;
    }
    if (b == bundles.size()) {
      bundles.emplace_back();
      n_codes.push_back(0);
    }
    bundles[b].push_back(i);
    n_codes[b] += wanted;
  }
  std::int32_t number = 0;
  for (const auto& bundle : bundles) {
    if (bundle.size() < 2) continue;
    for (const std::size_t i : bundle) features[candidates[i]].bundle = number;
    ++number;
  }
}

#define GRAFTBOOST_FOR_TABLE(Table)                                                  \
  template void bundle_features(const Table&, std::span<const RowId>, std::uint64_t, \
                                const std::vector<std::uint32_t>&, std::vector<Feature>&);
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
