// A model as bytes and back, for pickle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "array.hpp"
#include "forest.hpp"

namespace graftboost {

// Both sides walk a model in the same order through the archive() functions below.
class ByteWriter {
 public:
  static constexpr bool reads = false;

  template <class T>
  ByteWriter& plain(T* values, std::size_t n) {
    if (n != 0) bytes_.append(reinterpret_cast<const char*>(values), n * sizeof(T));
    return *this;
  }
  std::size_t length(std::size_t n) {
    auto written = static_cast<std::uint64_t>(n);
    plain(&written, 1);
    return n;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  static constexpr bool reads = true;

  ByteReader(const char* bytes, std::size_t size) : at_(bytes), left_(size) {}

  template <class T>
  ByteReader& plain(T* values, std::size_t n) {
    if (n > left_ / sizeof(T))
      throw std::invalid_argument("state: the bytes of the model end too early");
    if (n != 0) std::memcpy(static_cast<void*>(values), at_, n * sizeof(T));
    at_ += n * sizeof(T);
    left_ -= n * sizeof(T);
    return *this;
  }
  // Every element takes a byte at least, so a length beyond what is left is known to be wrong.
  std::size_t length(std::size_t) {
    std::uint64_t n = 0;
    plain(&n, 1);
    if (n > left_) throw std::invalid_argument("state: the bytes of the model end too early");
    return static_cast<std::size_t>(n);
  }

 private:
  const char* at_;
  std::size_t left_;
};

template <class A, class T>
  requires std::is_trivially_copyable_v<T>
void archive(A& a, T& value) {
  a.plain(&value, 1);
}

template <class A, class T>
void archive(A& a, Array<T>& values) {
  const std::size_t n = a.length(values.size());
  if constexpr (A::reads) values.resize(n);
  a.plain(values.data(), n);
}

template <class A, class T>
void archive(A& a, std::vector<T>& values) {
  const std::size_t n = a.length(values.size());
  if constexpr (A::reads) values.resize(n);
  if constexpr (std::is_trivially_copyable_v<T>) {
    a.plain(values.data(), n);
  } else {
    for (T& value : values) archive(a, value);
  }
}

// Field by field where a struct has padding: the same model is to give the same bytes.
static_assert(sizeof(Node) == 64 && sizeof(Test) == 8 && sizeof(Totals) == 24, "no padding");

template <class A>
void archive(A& a, Loss& loss) {
  archive(a, loss.kind);
  archive(a, loss.n_classes);
  archive(a, loss.centre);
  archive(a, loss.scale);
  archive(a, loss.weight_unit);
  archive(a, loss.least_hessian);
}

template <class A>
void archive(A& a, TrainingParams& params) {
  archive(a, params.n_estimators);
  archive(a, params.learning_rate);
  archive(a, params.max_leaf_nodes);
  archive(a, params.min_samples_leaf);
  archive(a, params.l2_regularization);
  archive(a, params.subsample);
  archive(a, params.seed);
  archive(a, params.updatable);
}

template <class A>
void archive(A& a, Feature& feature) {
  archive(a, feature.n_categories);
  archive(a, feature.edges);
  archive(a, feature.edges_single);
  archive(a, feature.common_code);
  archive(a, feature.common_share);
  archive(a, feature.bundle);
}

template <class A>
void archive(A& a, Tree& tree) {
  archive(a, tree.nodes);
  if constexpr (A::reads) tree.index_leaves();
}

template <class A>
void archive(A& a, TreeState& state) {
  archive(a, state.leaf_ids.narrow);
  archive(a, state.leaf_ids.wide);
  archive(a, state.recorded);
  auto kind = static_cast<std::uint8_t>(state.sums.index());
  archive(a, kind);
  if constexpr (A::reads) {
    if (kind == 1) state.sums = KeptSums<WideSums>{};
  }
  std::visit([&](auto& kept) { archive(a, kept); }, state.sums);
  archive(a, state.counted);
  if constexpr (A::reads) {
    state.watches.resize(std::visit([](auto& kept) { return kept.size(); }, state.sums));
  }
}

// The layout follows from the bin map, so only the rows themselves are written.
template <class A>
void archive(A& a, Rows& rows) {
  archive(a, rows.n_);
  archive(a, rows.cells);
  archive(a, rows.sparse_begin);
  archive(a, rows.sparse_count);
  archive(a, rows.sparse_entries);
  archive(a, rows.target);
  archive(a, rows.weight);
  archive(a, rows.raw_target);
  archive(a, rows.raw_weight);
  archive(a, rows.ids);
}

template <class A>
void archive(A& a, Forest& forest) {
  archive(a, forest.loss);
  archive(a, forest.params);
  archive(a, forest.rows);
  archive(a, forest.target_sums.classes);
  archive(a, forest.target_sums.sum);
  archive(a, forest.target_sums.weight);
  archive(a, forest.base_scores);
  archive(a, forest.noise);
  archive(a, forest.trees);
  archive(a, forest.states);
  archive(a, forest.validation_losses);
  if constexpr (A::reads) forest.rows.layout = CodeLayout(*forest.bins);
}

}  // namespace graftboost
