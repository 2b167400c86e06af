#include <nanobind/stl/optional.h>

#include "python/bindings.hpp"
#include "update/update_trees.hpp"

namespace graftboost::python {

void bind_update_counts(nb::module_& m) {
  using Fidelity = gb::FidelityEstimate;
  nb::class_<Fidelity>(m, "FidelityEstimate", "What an update achieved for the rows it changed.")
      .def_ro("is_of_rows", &Fidelity::is_of_rows)
      .def_ro("achieved", &Fidelity::achieved)
      .def_ro("left", &Fidelity::left)
      .def_ro("left_error", &Fidelity::left_error)
      .def_ro("most_left", &Fidelity::most_left)
      .def_ro("rows_remembered", &Fidelity::rows_remembered)
      .def_ro("rows_still_remembered", &Fidelity::rows_still_remembered);
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
      .def_ro("rows_shifted", &gb::UpdateCounts::rows_shifted)
      .def_ro("rows_deferred", &gb::UpdateCounts::rows_deferred)
      .def_prop_ro("fidelity", [](const gb::UpdateCounts& c) {
        return c.fidelity.is_known ? std::optional(c.fidelity) : std::nullopt;
      });
  using Pending = gb::PendingSurvey;
  nb::class_<Pending>(m, "PendingSurvey", "What updates have deferred.")
      .def_prop_ro("n_removed", [](const Pending& p) { return p.rows.n_removed; })
      .def_prop_ro("n_added", [](const Pending& p) { return p.rows.n_added; })
      .def_ro("n_nodes", &Pending::n_nodes)
      .def_ro("work", &Pending::work)
      .def_ro("now", &Pending::now);
}

}  // namespace graftboost::python
