// One function per bound class; each is defined in a file of its own.
#pragma once

#include "python/arguments.hpp"

namespace graftboost::python {

void bind_tables(nb::module_& m);
void bind_bin_map(nb::module_& m);
void bind_update_counts(nb::module_& m);
void bind_model(nb::module_& m);

}  // namespace graftboost::python
