// Everything that can be wrong with an update is found before anything changes.
#pragma once

#include <vector>

#include "update/update.hpp"

namespace graftboost {

// The rows that a request removes: slots per shard, ascending.
using RemovedSlots = std::vector<std::vector<Slot>>;

struct CheckedRequest {
  RemovedSlots removed;
  bool grows = false;   // to more classes
  bool refits = false;  // the trees cannot stay
};

// Throws std::invalid_argument, whose message names the argument, if the request is not valid. Rows
// elsewhere to remove are found, marked and fetched: the caller commits or undoes that.
template <class Table>
CheckedRequest check_request(ModelState& model, const UpdateRequest<Table>& request,
                             const UpdateRule& rule);

}  // namespace graftboost
