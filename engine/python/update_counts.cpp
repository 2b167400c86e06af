#include "update/update_counts.hpp"

#include "python/bindings.hpp"

namespace graftboost::python {

void bind_update_counts(nb::module_& m) {
  nb::class_<gb::UpdateCounts>(m, "UpdateCounts", "What an update did.")
      .def_ro("refitted", &gb::UpdateCounts::refitted)
      .def_ro("trees_touched", &gb::UpdateCounts::trees_touched)
      .def_ro("nodes_checked", &gb::UpdateCounts::nodes_checked)
      .def_ro("nodes_regrown", &gb::UpdateCounts::nodes_regrown)
      .def_ro("rows_regrown", &gb::UpdateCounts::rows_regrown)
      .def_ro("nodes_shifted", &gb::UpdateCounts::nodes_shifted)
      .def_prop_ro("work", [](const gb::UpdateCounts& c) { return c.work.amount(); })
      .def_ro("seconds_checking", &gb::UpdateCounts::seconds_checking)
      .def_ro("seconds_regrowing", &gb::UpdateCounts::seconds_regrowing)
      .def_ro("seconds_refitting", &gb::UpdateCounts::seconds_refitting)
      .def_ro("rows_shifted", &gb::UpdateCounts::rows_shifted);
}

}  // namespace graftboost::python
