// One function per bound class; each is defined in a file of its own.
#pragma once

#include "data/bins.hpp"
#include "python/arguments.hpp"

namespace graftboost::python {

void bind_tables(nb::module_& m);
void bind_bin_map(nb::module_& m);
void bind_update_counts(nb::module_& m);
void bind_model(nb::module_& m);
void bind_shards(nb::module_& m);

// Bins that the caller specifies, by column.
gb::GivenColumns given_columns(const nb::dict& n_categories, const nb::dict& bin_edges);

}  // namespace graftboost::python
