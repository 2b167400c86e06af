#include "data/code_layout.hpp"

#include <algorithm>

#include "data/bundling.hpp"

namespace graftboost {
namespace {

constexpr std::uint32_t most_narrow_codes = 256;

// What looking for a row's sparse cells costs, in plain cells: below this nothing is stored sparsely.
constexpr double sparse_row_cost = 8;

// The features worth storing sparsely: those that save something, if together they save enough.
std::vector<bool> choose_sparse(const std::vector<Feature>& features) {
  std::vector<bool> chosen(features.size());
  double saved = 0;
  for (std::size_t f = 0; f < features.size(); ++f) {
    const double saving = features[f].bundle < 0 ? sparse_saving(features[f]) : 0;
    chosen[f] = saving > 0;
    saved += std::max(saving, 0.0);
  }
  if (saved < sparse_row_cost) chosen.assign(features.size(), false);
  return chosen;
}

FeatureLayout place_of(const Feature& feature, std::uint32_t column) {
  FeatureLayout place;
  place.column = column;
  place.n_codes = feature.n_codes();
  place.common_code = feature.common_code;
  place.zero_code = feature.code(0.0);
  place.categorical = feature.categorical();
  return place;
}

}  // namespace

CodeLayout::CodeLayout(const BinMap& bins)
    : numbers_(bins.cut()), n_cut_(bins.cut().size()), rare_(place_of(BinMap::rare(), 0)) {
  rare_.kind = Kind::rare;
  const std::vector<Feature>& features = bins.features();
  const std::vector<bool> sparse = choose_sparse(features);
  std::vector<std::uint32_t> narrow, wide, rest;
  std::vector<std::vector<std::uint32_t>> bundles;
  for (std::uint32_t i = 0; i < features.size(); ++i) {
    const Feature& feature = features[i];
    places_.push_back(place_of(feature, bins.cut()[i]));
    if (feature.bundle >= 0) {
      const auto b = static_cast<std::size_t>(feature.bundle);
      if (b >= bundles.size()) bundles.resize(b + 1);
      bundles[b].push_back(i);
    } else {
      (sparse[i] ? rest : feature.n_codes() <= most_narrow_codes ? narrow : wide).push_back(i);
    }
  }
  for (const std::uint32_t i : narrow) {
    byte_offsets_.push_back(static_cast<std::uint32_t>(histogram_size_));
    place(i, Kind::narrow, n_bytes() - 1);
  }
  first_bundle_ = n_bytes();
  for (const auto& numbers : bundles) bundle(numbers, features);
  for (const std::uint32_t i : wide) {
    word_offsets_.push_back(static_cast<std::uint32_t>(histogram_size_));
    place(i, Kind::wide, first_word() + n_words() - 1);
  }
  plain_size_ = histogram_size_;
  first_sparse_ = by_offset_.size();
  for (const std::uint32_t i : rest) place(i, Kind::sparse, 0);
  row_bytes_ = wide.empty() ? n_bytes() : 2 * (first_word() + n_words());
}

void CodeLayout::bundle(const std::vector<std::uint32_t>& numbers,
                        const std::vector<Feature>& features) {
  const auto none_differs = static_cast<std::uint32_t>(histogram_size_++);
  byte_offsets_.push_back(none_differs);
  implied_cells_.push_back(none_differs);
  const std::size_t cells = bundle_cells_.size();
  bundle_cells_.resize(cells + n_byte_values, none_differs);
  std::uint32_t byte = 1;
  for (const std::uint32_t number : numbers) {
    const BundledCodes codes(features[number]);
    FeatureLayout& p = places_[number];
    p.base = byte;
    p.first_bundled = codes.first;
    p.n_bundled = codes.n;
    place(number, Kind::bundled, n_bytes() - 1);
    for (std::uint32_t i = 0; i < codes.n; ++i)
      bundle_cells_[cells + byte++] = p.offset + codes.first + i;
  }
}

void CodeLayout::place(std::uint32_t number, Kind kind, std::size_t position) {
  FeatureLayout& p = places_[number];
  p.kind = kind;
  p.offset = static_cast<std::uint32_t>(histogram_size_);
  p.position = static_cast<std::uint32_t>(position);
  histogram_size_ += p.n_codes;
  by_offset_.push_back(number);
  if (kind == Kind::bundled) implied_cells_.push_back(p.offset + p.common_code);
  n_differing_ += p.counts_only_differing();
  any_commonly_missing_ |= p.counts_only_differing() && p.common_code == missing_code;
  if (p.counts_only_differing() && p.zero_code != p.common_code)
    not_zero_commonly_.push_back(number);
}

void CodeLayout::add(std::span<const std::uint32_t> columns) {
  for (const std::uint32_t column : columns) {
    numbers_.add(column);
    places_.push_back(place_of(BinMap::rare(), column));
    place(static_cast<std::uint32_t>(places_.size() - 1), Kind::sparse, 0);
  }
}

}  // namespace graftboost
