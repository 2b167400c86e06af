// Models as arrays in memory, which tests may corrupt.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "io/model_arrays.hpp"
#include "io/validate_state.hpp"
#include "model/state_check.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"

namespace graftboost::testing {

inline std::size_t bytes_of(Number number) {
  switch (number) {
    case Number::u8:
      return 1;
    case Number::u16:
    case Number::i16:
      return 2;
    case Number::u32:
    case Number::i32:
      return 4;
    default:
      return 8;
  }
}

// The arrays of a model as a file would hold them. Owns the memory.
struct Stored {
  struct Bytes {
    Number number;
    std::size_t size;            // in elements
    std::vector<__int128> data;  // aligned as mapped pages are
  };
  Summary summary;
  std::map<std::string, Bytes> arrays;

  Stored(const ModelState& model, bool state, bool room) : summary(summary_of(model, state, room)) {
    for (const ModelArray& array : arrays_of(model, state, room)) {
      const std::size_t width = bytes_of(array.number);
      std::size_t size = array.distance * array.pieces.size();
      if (array.distance == 0)
        for (const ModelArray::Piece& piece : array.pieces) size += piece.length;
      Bytes& stored = arrays[array.name];
      stored = {array.number, size, std::vector<__int128>(size * width / 16 + 1)};
      std::size_t at = 0;
      for (const ModelArray::Piece& piece : array.pieces) {
        REQUIRE(array.distance == 0 || piece.length <= array.distance);
        if (piece.length != 0)
          std::memcpy(reinterpret_cast<char*>(stored.data.data()) + at * width, piece.data,
                      piece.length * width);
        at += array.distance == 0 ? piece.length : array.distance;
      }
    }
  }

  template <class T>
  T* array(const std::string& name) {
    REQUIRE(arrays.contains(name));
    return reinterpret_cast<T*>(arrays.at(name).data.data());
  }
  std::size_t size(const std::string& name) const { return arrays.at(name).size; }

  GivenArrays given() {
    GivenArrays all;
    for (auto& [name, bytes] : arrays) all[name] = {bytes.number, bytes.data.data(), bytes.size};
    return all;
  }
  // A model that borrows this memory, and must not outlive it.
  ModelState model() {
    const std::shared_ptr<const void> lender(this, [](const void*) {});
    return model_from(summary, given(), lender);
  }
};

inline std::vector<ModelOptions> all_options() {
  ModelOptions plain, weighted, sparse, wide;
  plain.training.subsample = 0.7;
  weighted.weighted = true;
  weighted.loss = LossKind::squared;
  sparse.many_columns = true;
  sparse.loss = LossKind::softmax;
  sparse.n_classes = 3;
  wide.max_bins = 600;
  wide.training.max_leaf_nodes = 300;
  wide.training.min_samples_leaf = 2;
  return {plain, weighted, sparse, wide};
}

// A model that is stored and loaded is the same, and valid.
inline void check_round_trip(const ModelState& model) {
  for (const bool room : {false, true}) {
    auto stored = std::make_shared<Stored>(model, true, room);
    ModelState loaded = model_from(stored->summary, stored->given(), stored);
    check_same(model, loaded);
    CHECK_EQ(loaded.shards.size(), 1);
    CHECK_EQ(loaded.params.n_estimators, model.params.n_estimators);
    CHECK(loaded.validation_losses == model.validation_losses);
    const auto invalid = find_invalid_state(loaded, true, 2);
    if (invalid) CHECK_EQ(*invalid, std::string("nothing"));
    const auto difference = find_difference(loaded, 2);
    if (difference) CHECK_EQ(*difference, std::string("nothing"));
    // Cached histograms are kept.
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      CHECK_EQ(model.nodes[t].counted, loaded.nodes[t].counted);
      std::visit(
          [&]<class Sums>(const TreeHistograms<Sums>& histograms) {
            const auto& others = std::get<TreeHistograms<Sums>>(loaded.nodes[t].histograms);
            REQUIRE(histograms.size() == others.size());
            for (std::size_t i = 0; i < histograms.size(); ++i) {
              CHECK_EQ(histograms[i].cached, others[i].cached);
              CHECK(histograms[i] == others[i]);
            }
          },
          model.nodes[t].histograms);
    }
  }
}

struct Corruption {
  const char* name;
  std::function<void(Stored&)> apply;
};

template <class T>
Corruption element(const char* name, std::size_t index, T value) {
  return {name, [=](Stored& stored) { stored.array<T>(name)[index] = value; }};
}

// Whether arrays are refused when a model is put together.
inline bool is_refused(Stored stored) {
  try {
    stored.model();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

}  // namespace graftboost::testing
