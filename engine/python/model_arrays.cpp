#include "python/model_arrays.hpp"

#include <algorithm>

#include "io/model_arrays.hpp"

namespace graftboost::python {
namespace {

constexpr std::array<std::pair<gb::Number, nb::dlpack::dtype (*)()>, 8> dtypes{{
    {gb::Number::u8, [] { return nb::dtype<std::uint8_t>(); }},
    {gb::Number::u16, [] { return nb::dtype<std::uint16_t>(); }},
    {gb::Number::u32, [] { return nb::dtype<std::uint32_t>(); }},
    {gb::Number::u64, [] { return nb::dtype<std::uint64_t>(); }},
    {gb::Number::i16, [] { return nb::dtype<std::int16_t>(); }},
    {gb::Number::i32, [] { return nb::dtype<std::int32_t>(); }},
    {gb::Number::i64, [] { return nb::dtype<std::int64_t>(); }},
    {gb::Number::f64, [] { return nb::dtype<double>(); }},
}};

nb::dlpack::dtype dtype_of(gb::Number number) {
  const auto is = [&](const auto& pair) { return pair.first == number; };
  return std::find_if(dtypes.begin(), dtypes.end(), is)->second();
}
gb::Number number_of(const std::string& name, nb::dlpack::dtype dtype) {
  for (const auto& [number, of] : dtypes) {
    if (of() == dtype) return number;
  }
  throw nb::value_error((name + " has numbers of a kind that no array has").c_str());
}

// Calls `use` with every number of a summary and its name.
template <class Summary, class Use>
void each_number(Summary& s, Use&& use) {
  use("n_classes", s.loss.n_classes);
  use("centre", s.loss.centre);
  use("scale", s.loss.scale);
  use("weighted", s.loss.weighted);
  use("weight_scale", s.loss.weight_scale);
  use("weight_unit", s.loss.weight_unit);
  use("typical_weight", s.loss.typical_weight);
  use("n_estimators", s.params.n_estimators);
  use("learning_rate", s.params.learning_rate);
  use("max_leaf_nodes", s.params.max_leaf_nodes);
  use("min_samples_leaf", s.params.min_samples_leaf);
  use("min_hessian", s.params.min_hessian);
  use("l2_regularization", s.params.l2_regularization);
  use("subsample", s.params.subsample);
  use("seed", s.params.seed);
  use("updatable", s.params.updatable);
  use("n_rows", s.n_rows);
  use("room", s.room);
  use("n_features", s.n_features);
  use("n_entries", s.n_entries);
  use("packed", s.packed);
}

gb::Summary read_summary(const nb::dict& d) {
  const auto read = [&]<class T>(const char* name, T& value) {
    if (!d.contains(name)) throw nb::value_error((std::string(name) + " is missing").c_str());
    try {
      value = nb::cast<T>(d[name]);
    } catch (const nb::cast_error&) {
      throw nb::value_error((std::string(name) + " has a value of the wrong kind").c_str());
    }
  };
  gb::Summary s;
  std::string loss;
  read("loss", loss);
  s.loss.kind = loss_kind(loss);
  each_number(s, read);
  return s;
}

// Keeps a Python object alive until the engine does not need it any more. The last owner must not
// wait for the interpreter's lock (see core/forking.hpp), so the interpreter is asked to release
// the object.
std::shared_ptr<const void> keep(nb::object object) {
  const auto let_go = [](const void* p) {
    const auto release = [](void* kept) {
      Py_DECREF(static_cast<PyObject*>(kept));
      return 0;
    };
    auto* kept = const_cast<PyObject*>(static_cast<const PyObject*>(p));
    if (!nb::is_alive()) return;
    if (PyGILState_Check() != 0 || Py_AddPendingCall(release, kept) != 0) {
      nb::gil_scoped_acquire gil;
      release(kept);
    }
  };
  return {object.release().ptr(), let_go};
}

}  // namespace

nb::dict summary_of(const gb::Model& model, bool state, bool room) {
  const gb::Summary summary = [&] {
    nb::gil_scoped_release release;
    return model.read([&](const gb::ModelState& of) { return gb::summary_of(of, state, room); });
  }();
  return describe(summary);
}

nb::dict describe(const gb::Summary& summary) {
  nb::dict described;
  described["loss"] = loss_names[static_cast<std::size_t>(summary.loss.kind)];
  each_number(summary, [&](const char* name, const auto& value) { described[name] = value; });
  return described;
}

nb::list arrays_of(const nb::object& self, bool state, bool room) {
  const auto& model = nb::cast<const gb::Model&>(self);
  std::vector<gb::ModelArray> arrays = [&] {
    nb::gil_scoped_release release;
    const auto collect = [&](const gb::ModelState& of) { return gb::arrays_of(of, state, room); };
    return state ? model.read_verified(collect) : model.read(collect);
  }();
  return describe(std::move(arrays), self);
}

nb::list describe(std::vector<gb::ModelArray> arrays, const nb::object& self) {
  nb::list described;
  for (gb::ModelArray& array : arrays) {
    nb::object owner = self;
    if (array.made) {
      auto* made = new std::shared_ptr<const void>(std::move(array.made));
      owner = nb::capsule(
          made, [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
    }
    nb::list pieces;
    for (const gb::ModelArray::Piece& piece : array.pieces) {
      pieces.append(nb::ndarray<nb::numpy, nb::ro>(piece.data, 1, &piece.length, owner, nullptr,
                                                   dtype_of(array.number)));
    }
    described.append(nb::make_tuple(array.name, array.distance, pieces));
  }
  return described;
}

gb::GivenArrays given_arrays(const nb::dict& arrays) {
  using Values = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  gb::GivenArrays given;
  for (const auto& [key, value] : arrays) {
    const std::string name = nb::str(key).c_str();
    Values values;
    if (!nb::try_cast(value, values))
      throw nb::value_error((name + " is not an array of one dimension").c_str());
    given[name] = {number_of(name, values.dtype()), values.data(), values.size()};
  }
  return given;
}

gb::ModelState shard_from(const nb::dict& summary, const nb::dict& arrays) {
  return gb::shard_from(read_summary(summary), given_arrays(arrays), keep(nb::dict(arrays)));
}

std::unique_ptr<gb::Model> model_from(const nb::dict& summary, const nb::dict& arrays,
                                      const nb::object& verify) {
  auto model = std::make_unique<gb::Model>(
      gb::model_from(read_summary(summary), given_arrays(arrays), keep(nb::dict(arrays))));
  if (!model->updatable()) return model;
  std::function<void()> verify_file;
  if (!verify.is_none()) {
    verify_file = [kept = keep(verify)] {
      nb::gil_scoped_acquire gil;
      nb::handle(static_cast<const PyObject*>(kept.get()))();
    };
  }
  model->require_verification(std::move(verify_file));
  return model;
}

}  // namespace graftboost::python
