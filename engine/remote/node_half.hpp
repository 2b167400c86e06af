// The node half of a model as bytes.
#pragma once

#include <memory>
#include <span>

#include "model/model_state.hpp"
#include "remote/message.hpp"

namespace graftboost {

// Everything but the rows, the bins, and what follows from the rows: cached histograms and gain
// bounds. Whoever keeps it, and shards that have their rows, can restore a model.
Bytes write_node_half(const ModelState& model);
// As it will be with the layout that has these columns besides those with cuts.
Bytes write_node_half(const ModelState& model, std::span<const std::uint32_t> added_columns);
// A model without rows. Throws std::invalid_argument if the bytes are not those of a node half.
ModelState read_node_half(std::shared_ptr<const BinMap> bins, std::span<const std::uint8_t> bytes);

}  // namespace graftboost
