// A model as arrays with names, and back: what its files are made of.
//
// Predictions need the bins, the nodes and where boosting starts: little, which is copied and checked
// when a model is put together. Updates need the rows held and what they recorded, which can be
// gigabytes: these parts are lent, not copied, so that nothing is read before it is asked for. Their
// lengths are checked at once, their contents before the first use (see soundness.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model_state.hpp"

namespace graftboost {

enum class Number : std::uint8_t { u8, u16, u32, u64, i32, i64, f64 };

// One array, in pieces (a tree each, say) that lie so many elements apart in a file: there is room in
// between where a piece grows when rows are added.
struct ModelArray {
  struct Piece {
    const void* data;
    std::size_t length;  // in elements
  };
  std::string name;
  Number number;
  std::size_t distance;  // from one piece to the next; 0: each begins where the one before ends
  std::vector<Piece> pieces;
  std::shared_ptr<const void> made;  // what the pieces point into, unless it is the model itself
};

// The parts of a model, those that predictions need first; they are valid while the model is not
// changed. Without `state` it comes back as one that is not updatable. With `room`, arrays that have an
// element for each row are given room to grow.
std::vector<ModelArray> arrays_of(const ModelState& model, bool state, bool room);

// What there is to know of a model besides its arrays.
struct Summary {
  Loss loss;
  TrainingParams params;
  double noise = 1;
  std::size_t n_rows = 0;
  std::size_t room = 0;        // rows that fit into the arrays with an element for each
  std::size_t n_features = 0;  // columns of a table
  std::size_t n_entries = 0;   // cells that are kept apart (see RowTable)
  bool packed = true;          // sums are PackedSums
};
Summary summary_of(const ModelState& model, bool state, bool room);

// One array as it was found.
struct GivenArray {
  Number number;
  void* data;
  std::size_t size;  // in elements
};
using GivenArrays = std::map<std::string, GivenArray>;

// Puts a model together. Throws std::invalid_argument, with what is wrong, if it is not one; nothing is
// taken on trust. `lender` keeps the memory of the given parts, which the model writes to.
ModelState model_from(const Summary& summary, const GivenArrays& arrays,
                      std::shared_ptr<const void> lender);

}  // namespace graftboost
