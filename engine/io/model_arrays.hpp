// A model as named arrays, and back. Model files consist of these arrays.
//
// Predictions need the bins, the nodes and the base scores. These are small; they are copied and
// checked when a model is made from arrays. Updates need the rows and what they recorded, which may
// take gigabytes. These arrays are used in place, so that nothing is read before it is needed.
// Their lengths are checked at once, their contents before the first use (see validate_state.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model_state.hpp"

namespace graftboost {

enum class Number : std::uint8_t { u8, u16, u32, u64, i16, i32, i64, f64 };

// One array, in pieces (for example one per tree). In a file, pieces are `distance` elements apart,
// so that there is room for each of them to grow when rows are added.
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

// The arrays of a model, first those that predictions need. They are valid while the model does not
// change. Without `state`, they make a model that cannot be updated. With `room`, arrays with one
// element per row have room to grow.
std::vector<ModelArray> arrays_of(const ModelState& model, bool state, bool room);

// The properties of a model that are not arrays.
struct Summary {
  Loss loss;
  TrainingParams params;
  std::size_t n_rows = 0;
  std::size_t room = 0;        // rows that fit into the arrays with an element for each
  std::size_t n_features = 0;  // columns of a table
  std::size_t n_entries = 0;   // entries of all rows (see RowTable)
  bool packed = true;          // sums are PackedSums
};
Summary summary_of(const ModelState& model, bool state, bool room);

// An array from which a model is made.
struct GivenArray {
  Number number;
  void* data;
  std::size_t size;  // in elements
};
using GivenArrays = std::map<std::string, GivenArray>;

// Makes a model from arrays that may come from anywhere. Throws std::invalid_argument, which says
// what is wrong, unless they are the arrays of a model. The model uses and changes the arrays in
// place; `lender` owns their memory.
ModelState model_from(const Summary& summary, const GivenArrays& arrays,
                      std::shared_ptr<const void> lender);
// The same for a shard, whose nodes have no sums.
ModelState shard_from(const Summary& summary, const GivenArrays& arrays,
                      std::shared_ptr<const void> lender);

}  // namespace graftboost
