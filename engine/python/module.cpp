// The engine as a Python module. Only the files of this folder know of Python.
#include <vector>

#include "python/bindings.hpp"
#include "update/update_counts.hpp"

NB_MODULE(_engine, m) {
  m.doc() = "The C++ engine of graftboost.";
  gb::python::bind_tables(m);
  gb::python::bind_bin_map(m);
  gb::python::bind_update_counts(m);
  gb::python::bind_model(m);
  gb::python::bind_shards(m);

  // nanobind finds instances, and what they keep alive, in tables that only grow, and ends the
  // process if there is no memory for that. This makes room for so many in advance.
  std::vector<gb::UpdateCounts> many(1000);
  nb::list instances;
  for (gb::UpdateCounts& counts : many)
    instances.append(nb::cast(counts, nb::rv_policy::reference_internal, m));
}
