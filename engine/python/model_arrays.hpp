// A model to and from a summary and named arrays.
#pragma once

#include <memory>
#include <vector>

#include "io/model_arrays.hpp"
#include "model/model.hpp"
#include "python/arguments.hpp"

namespace graftboost::python {

nb::dict describe(const gb::Summary& summary);
nb::list describe(std::vector<gb::ModelArray> arrays, const nb::object& owner);
nb::dict summary_of(const gb::Model& model, bool state, bool room);
// Tuples (name, elements from one piece to the next, pieces). Large arrays are not copied: they are
// to be used before the model changes.
nb::list arrays_of(const nb::object& model, bool state, bool room);
gb::GivenArrays given_arrays(const nb::dict& arrays);
gb::ModelState shard_from(const nb::dict& summary, const nb::dict& arrays);
std::unique_ptr<gb::Model> model_from(const nb::dict& summary, const nb::dict& arrays,
                                      const nb::object& verify);

}  // namespace graftboost::python
