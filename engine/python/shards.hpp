// How the engine talks to shards through Python.
#pragma once

#include "python/arguments.hpp"
#include "remote/rounds.hpp"

namespace graftboost::python {

// Exchanges messages by a Python function: function(message, phase, node half) -> (sums, list of bytes).
gb::Exchange exchange_by(nb::object function);

}  // namespace graftboost::python
