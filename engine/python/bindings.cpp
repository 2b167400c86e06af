// The engine as a Python module: the only file that knows of Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <variant>

#include "model/model.hpp"
#include "model/inspection.hpp"
#include "io/model_arrays.hpp"
#include "update/refresh.hpp"
#include "io/validate_state.hpp"
#include "update/update.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace gb = graftboost;

// An engine that runs out of memory raises; a caster that allocates does not, because casters are
// noexcept. So no argument here is a std::vector, a std::map, a std::shared_ptr or a long std::string.

namespace {

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Scores = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

// A table of which only the cells that are not 0 need be there, row by row (scipy's CSR). Holds on to
// the caller's arrays.
class SparseTable {
 public:
  using Begin = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Columns = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Values = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

  // Looks at all that the engine relies on.
  SparseTable(Begin begin, Columns columns, Values values, std::size_t n_columns)
      : begin_(std::move(begin)),
        columns_(std::move(columns)),
        values_(std::move(values)),
        n_columns_(n_columns) {
    if (n_columns == 0 || n_columns >= gb::most_columns)
      throw nb::value_error("n_columns: there are too many columns, or none");
    const std::size_t n = columns_.size();
    bool sound = begin_.size() > 0 && begin_(0) == 0 && values_.size() == n &&
                 begin_(begin_.size() - 1) == static_cast<std::int64_t>(n);
    for (std::size_t r = 0; sound && r + 1 < begin_.size(); ++r) sound = begin_(r) <= begin_(r + 1);
    for (std::size_t r = 0; sound && r + 1 < begin_.size(); ++r) {
      std::int64_t last = -1;
      for (std::int64_t i = begin_(r); i < begin_(r + 1); ++i) {
        const std::int32_t column = columns_.data()[i];
        sound &= column > last;
        last = column;
      }
      sound &= last < static_cast<std::int64_t>(n_columns);
    }
    if (!sound) throw nb::value_error("the columns of a row do not ascend, or are not there");
  }

  std::size_t n_rows() const { return begin_.size() - 1; }
  nb::dlpack::dtype dtype() const { return values_.dtype(); }
  template <class Value>
  gb::SparseTable<Value> matrix() const {
    return {begin_.data(), columns_.data(), static_cast<const Value*>(values_.data()), n_rows(),
            n_columns_};
  }

 private:
  Begin begin_;
  Columns columns_;
  Values values_;
  std::size_t n_columns_;
};

// What Python passes for X.
using AnyTable = std::variant<Table, SparseTable*>;

std::size_t n_rows_of(const AnyTable& x) {
  const auto* dense = std::get_if<Table>(&x);
  return dense != nullptr ? dense->shape(0) : std::get<SparseTable*>(x)->n_rows();
}

template <class Value>
gb::DenseTable<Value> matrix(const Table& x) {
  return {static_cast<const Value*>(x.data()), x.shape(0), x.shape(1), x.stride(0), x.stride(1)};
}
template <class Value>
gb::SparseTable<Value> matrix(const SparseTable* x) {
  return x->matrix<Value>();
}

// Calls with the table as it is stored, and its values as float or as double: no other kind of number
// reaches the engine.
template <class Use>
decltype(auto) with_values(const AnyTable& x, Use&& use) {
  return std::visit(
      [&](const auto& table) {
        const auto dtype = [&] {
          if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(table)>>) {
            return table->dtype();
          } else {
            return table.dtype();
          }
        }();
        if (dtype == nb::dtype<float>()) return use(matrix<float>(table));
        if (dtype == nb::dtype<double>()) return use(matrix<double>(table));
        throw nb::type_error("X: the engine takes float32 or float64");
      },
      x);
}

template <class T>
std::span<const T> view(
    const std::optional<nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>& a) {
  return a ? std::span<const T>(a->data(), a->size()) : std::span<const T>();
}

// Gives numpy the memory of a vector, which is wiped when numpy is done with it.
template <class T, std::size_t N>
nb::ndarray<nb::numpy, T, nb::ndim<N>> to_numpy(std::vector<T> values,
                                                const std::array<std::size_t, N>& shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept {
    auto* values = static_cast<std::vector<T>*>(p);
    gb::wipe(values->data(), values->size() * sizeof(T));  // ids and gradients are people's too
    delete values;
  });
  return nb::ndarray<nb::numpy, T, nb::ndim<N>>(owned->data(), N, shape.data(), owner);
}
template <class T>
auto to_numpy(std::vector<T> values) {
  const std::size_t size = values.size();
  return to_numpy<T, 1>(std::move(values), {size});
}

gb::LossKind loss_kind(const std::string& name) {
  if (name == "logistic") return gb::LossKind::logistic;
  if (name == "softmax") return gb::LossKind::softmax;
  if (name == "squared") return gb::LossKind::squared;
  throw nb::value_error("loss: expected 'logistic', 'softmax' or 'squared'");
}

// Asks Python for Ctrl-C now and then, and the caller's own function after every iteration.
class Listener {
 public:
  explicit Listener(nb::object on_iteration) : on_iteration_(std::move(on_iteration)) {}

  bool operator()(int done, double loss) {
    using Clock = std::chrono::steady_clock;
    const auto now = Clock::now();
    const bool called = !on_iteration_.is_none();
    if (!called && now - last_look_ < std::chrono::milliseconds(100)) return false;
    last_look_ = now;
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return called && nb::cast<bool>(on_iteration_(done, loss));
  }

 private:
  nb::object on_iteration_;
  std::chrono::steady_clock::time_point last_look_ = std::chrono::steady_clock::now();
};

gb::BinMap fit_bins(const AnyTable& x, const std::optional<Integers>& row_ids,
                    const nb::dict& n_categories, int max_bins, double split_sample, bool width,
                    const nb::dict& bin_edges, std::uint64_t seed, int n_threads,
                    std::size_t rare_below) {
  const gb::BinningParams params{max_bins, split_sample, width, seed, rare_below};
  gb::GivenColumns given;
  for (const auto& [column, n] : n_categories)
    given.n_categories[nb::cast<std::uint32_t>(column)] = nb::cast<std::uint32_t>(n);
  for (const auto& [column, edges] : bin_edges) {
    auto& to = given.edges[nb::cast<std::uint32_t>(column)];
    for (const nb::handle edge : edges) to.push_back(nb::cast<double>(edge));
  }
  return with_values(x, [&](const auto& values) {
    nb::gil_scoped_release release;
    return gb::BinMap::fit(values, view<std::int64_t>(row_ids), given, params, n_threads);
  });
}

struct Arguments {
  const gb::BinMap& bins;
  AnyTable x;
  Doubles y;
  std::optional<Doubles> weight;
  std::optional<Integers> row_ids;
  gb::LossKind kind;
  int n_classes;
  gb::TrainingParams params;
  std::size_t stats_memory;
  int n_threads;
  std::optional<AnyTable> x_val;
  std::optional<Doubles> y_val, weight_val;
  gb::Stopping stopping;
};

std::unique_ptr<gb::Forest> fit_forest(const Arguments& a, nb::object on_iteration) {
  Listener listener(std::move(on_iteration));
  return with_values(a.x, [&]<class DenseTable>(const DenseTable& values) {
    const gb::Sample<DenseTable> sample{values, view<double>(a.y), view<double>(a.weight),
                                    view<std::int64_t>(a.row_ids)};
    gb::Sample<DenseTable> validation;
    if (a.x_val) {
      with_values(*a.x_val, [&]<class Other>(const Other& held_out) {
        if constexpr (std::is_same_v<DenseTable, Other>) {
          validation = {held_out, view<double>(a.y_val), view<double>(a.weight_val), {}};
        } else {
          throw nb::type_error("X_val: expected the same kind of table and dtype as X");
        }
      });
    }
    nb::gil_scoped_release release;
    return gb::Forest::fit(std::make_shared<const gb::BinMap>(a.bins), sample, a.kind, a.n_classes,
                           a.params, a.stats_memory, a.x_val ? &validation : nullptr, a.stopping,
                           std::ref(listener), a.n_threads);
  });
}

template <class T>
auto to_numpy(gb::Columns<T> columns, std::size_t n_rows) {
  return to_numpy<T, 2>(std::move(columns.values), {n_rows, columns.per_row});
}

nb::ndarray<nb::numpy, double, nb::ndim<2>> raw_scores(const gb::Forest& forest, const AnyTable& x,
                                                       int n_threads, int first, int last) {
  gb::Columns<double> scores;
  with_values(x, [&](const auto& values) {
    nb::gil_scoped_release release;
    scores = forest.scores(values, first, last, n_threads);
  });
  return to_numpy(std::move(scores), n_rows_of(x));
}

nb::ndarray<nb::numpy, std::int32_t, nb::ndim<2>> apply(const gb::Forest& forest, const AnyTable& x,
                                                        int n_threads) {
  gb::Columns<std::int32_t> ids;
  with_values(x, [&](const auto& values) {
    nb::gil_scoped_release release;
    ids = forest.leaf_ids(values, n_threads);
  });
  return to_numpy(std::move(ids), n_rows_of(x));
}

// Looks at a forest while nobody changes it; Python goes on while an update is waited for.
template <class Use>
auto at_rest(const gb::Forest& forest, Use&& use) {
  nb::gil_scoped_release release;
  const gb::Forest::Exclusive lock(forest);
  return use();
}

// One array for each of some things that `of` says about each of these.
template <class Item, class Of>
auto column(const std::vector<Item>& items, Of&& of) {
  std::vector<decltype(of(items[0]))> values;
  for (const Item& item : items) values.push_back(of(item));
  return to_numpy(std::move(values));
}

// To be called before the rows or the states of a forest are used. Whoever comes second waits, without
// the interpreter's lock, which the look itself takes.
void look_first(const gb::Forest& forest) {
  if (!forest.unseen) return;
  nb::gil_scoped_release release;
  std::lock_guard lock(forest.look_lock);
  if (!forest.unseen) return;
  forest.first_look();
  forest.first_look = {};  // lets go of the file, which rows may be removed from
  forest.unseen = false;
}

nb::dict describe_tree(gb::Forest& forest, std::size_t t) {
  look_first(forest);
  const std::vector<gb::Node> nodes = at_rest(forest, [&] {
    gb::restore_sums(forest, 1);
    return t < forest.trees.size() ? forest.trees[t].nodes : std::vector<gb::Node>{};
  });
  if (nodes.empty()) throw nb::index_error("t: there is no such tree");
  using gb::Node;
  nb::dict tree;
  tree["left"] = column(nodes, [](const Node& n) { return n.left; });
  tree["right"] = column(nodes, [](const Node& n) { return n.right; });
  tree["parent"] = column(nodes, [](const Node& n) { return n.parent; });
  tree["leaf"] = column(nodes, [](const Node& n) { return n.leaf; });
  tree["feature"] = column(nodes, [](const Node& n) { return n.split.feature; });
  tree["low"] = column(nodes, [](const Node& n) { return n.split.low; });
  tree["span"] = column(nodes, [](const Node& n) { return n.split.span; });
  tree["gain"] = column(nodes, [](const Node& n) { return n.gain; });
  tree["value"] = column(nodes, [](const Node& n) { return n.value; });
  tree["g"] = column(nodes, [](const Node& n) { return n.sums.g; });
  tree["h"] = column(nodes, [](const Node& n) { return n.sums.h; });
  tree["n"] = column(nodes, [](const Node& n) { return n.sums.n; });
  return tree;
}

// What `use` says of the state of a tree, while nobody changes it.
template <class Use>
auto with_state(const gb::Forest& forest, std::size_t t, Use&& use) {
  look_first(forest);
  auto said = at_rest(forest, [&] {
    return t < forest.states.size() ? std::optional(use(forest.states[t])) : std::nullopt;
  });
  if (!said) throw nb::index_error("t: there is no such tree, or the model is not updatable");
  return *std::move(said);
}

nb::dict describe_splits(const gb::Forest& forest, std::size_t t) {
  const std::vector<gb::SplitRank> places =
      with_state(forest, t, [&](const gb::TreeState&) { return gb::split_ranks(forest, t); });
  using Place = gb::SplitRank;
  nb::dict splits;
  splits["node"] = column(places, [](const Place& p) { return p.node; });
  splits["n_better"] = column(places, [](const Place& p) { return p.n_better; });
  splits["gain"] = column(places, [](const Place& p) { return p.gain; });
  splits["other_gain"] = column(places, [](const Place& p) { return p.other_gain; });
  splits["left_score"] = column(places, [](const Place& p) { return p.left_score; });
  splits["right_score"] = column(places, [](const Place& p) { return p.right_score; });
  splits["left_rows"] = column(places, [](const Place& p) { return p.left_rows; });
  splits["right_rows"] = column(places, [](const Place& p) { return p.right_rows; });
  splits["next_gain"] = column(places, [](const Place& p) { return p.next_gain; });
  splits["next_rows"] = column(places, [](const Place& p) { return p.next_rows; });
  return splits;
}

nb::tuple held_rows(gb::Forest& forest, const Integers& row_ids) {
  look_first(forest);
  const std::span<const gb::RowId> ids(row_ids.data(), row_ids.size());
  gb::HeldRows held = at_rest(forest, [&] { return gb::held_rows(forest, ids); });
  return nb::make_tuple(to_numpy(std::move(held.begin)), to_numpy(std::move(held.columns)),
                        to_numpy(std::move(held.codes)), to_numpy(std::move(held.target)));
}

// Added rows without any are given as X None.
gb::UpdateCounts update(gb::Forest& forest, const std::optional<AnyTable>& x,
                        const std::optional<Doubles>& y, const std::optional<Doubles>& weight,
                        const std::optional<Integers>& row_ids, const Integers& removed,
                        const Integers& relabel, int n_classes, const std::string& rule,
                        double tolerance, std::int64_t places, int n_threads,
                        const std::string& removed_argument) {
  if (!forest.params.updatable) throw nb::value_error("the model is not updatable");
  look_first(forest);
  const gb::ToleranceRule the_rule{
      rule == "rank" ? gb::ToleranceRule::Kind::rank : gb::ToleranceRule::Kind::regret, tolerance,
      places};
  const std::span<const gb::RowId> gone(removed.data(), removed.size());
  std::vector<std::int32_t> labels;
  for (std::size_t k = 0; k < relabel.size(); ++k)
    labels.push_back(
        static_cast<std::int32_t>(std::clamp<std::int64_t>(relabel(k), -1, INT32_MAX)));
  const auto run = [&]<class DenseTable>(const gb::Sample<DenseTable>* added) {
    nb::gil_scoped_release release;
    return gb::update(forest, added, gone, removed_argument, labels, n_classes, the_rule,
                      n_threads);
  };
  if (!x) return run(static_cast<const gb::Sample<gb::DenseTable<double>>*>(nullptr));
  return with_values(*x, [&]<class DenseTable>(const DenseTable& values) {
    const gb::Sample<DenseTable> added{values, view<double>(y), view<double>(weight),
                                   view<std::int64_t>(row_ids)};
    return run(&added);
  });
}

// --- parts ---------------------------------------------------------------------------------------

constexpr std::array<std::pair<gb::Number, nb::dlpack::dtype (*)()>, 7> dtypes{{
    {gb::Number::u8, [] { return nb::dtype<std::uint8_t>(); }},
    {gb::Number::u16, [] { return nb::dtype<std::uint16_t>(); }},
    {gb::Number::u32, [] { return nb::dtype<std::uint32_t>(); }},
    {gb::Number::u64, [] { return nb::dtype<std::uint64_t>(); }},
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
  throw nb::value_error((name + " has numbers of a kind that no part has").c_str());
}

constexpr std::array<const char*, 3> loss_names{"logistic", "softmax", "squared"};

// Calls with every number of a summary and its name.
template <class Summary, class Use>
void each_number(Summary& s, Use&& use) {
  use("n_classes", s.loss.n_classes);
  use("centre", s.loss.centre);
  use("scale", s.loss.scale);
  use("weighted", s.loss.weighted);
  use("weight_scale", s.loss.weight_scale);
  use("weight_unit", s.loss.weight_unit);
  use("least_hessian", s.loss.least_hessian);
  use("n_estimators", s.params.n_estimators);
  use("learning_rate", s.params.learning_rate);
  use("max_leaf_nodes", s.params.max_leaf_nodes);
  use("min_samples_leaf", s.params.min_samples_leaf);
  use("l2_regularization", s.params.l2_regularization);
  use("subsample", s.params.subsample);
  use("seed", s.params.seed);
  use("updatable", s.params.updatable);
  use("noise", s.noise);
  use("n_rows", s.n_rows);
  use("room", s.room);
  use("n_features", s.n_features);
  use("n_entries", s.n_entries);
  use("packed", s.packed);
}

nb::dict describe_summary(const gb::Summary& s) {
  nb::dict d;
  d["loss"] = loss_names[static_cast<std::size_t>(s.loss.kind)];
  each_number(s, [&](const char* name, const auto& value) { d[name] = value; });
  return d;
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

// (name, elements from one piece to the next, pieces), without copying what is large: to be used up
// before the forest changes.
nb::list describe_parts(const nb::object& self, bool state, bool room) {
  const auto& forest = nb::cast<const gb::Forest&>(self);
  if (state) look_first(forest);
  nb::list described;
  for (gb::Part& part : at_rest(forest, [&] { return gb::parts_of(forest, state, room); })) {
    nb::object owner = self;
    if (part.made) {
      auto* made = new std::shared_ptr<const void>(std::move(part.made));
      owner = nb::capsule(
          made, [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
    }
    nb::list pieces;
    for (const gb::Part::Piece& piece : part.pieces) {
      pieces.append(nb::ndarray<nb::numpy, nb::ro>(piece.data, 1, &piece.length, owner, nullptr,
                                                   dtype_of(part.number)));
    }
    described.append(nb::make_tuple(part.name, part.distance, pieces));
  }
  return described;
}

// Python's object lives until nobody needs it. Whoever is the last must not wait for the interpreter's
// lock (see forking.hpp), so the interpreter is asked to let go of it.
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

using Values = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::unique_ptr<gb::Forest> put_together(const nb::dict& summary, const nb::dict& parts,
                                         const nb::object& verify) {
  gb::GivenParts given;
  for (const auto& [key, value] : parts) {
    const std::string name = nb::str(key).c_str();
    Values values;
    if (!nb::try_cast(value, values))
      throw nb::value_error((name + " is not an array of one dimension").c_str());
    given[name] = {number_of(name, values.dtype()), values.data(), values.size()};
  }
  const std::shared_ptr<const void> lender = keep(nb::dict(parts));
  std::unique_ptr<gb::Forest> made = gb::put_together(read_summary(summary), given, lender);
  if (!made->params.updatable) return made;
  // What is verified first is held by the forest, and the forest by nothing of it.
  made->unseen = true;
  made->first_look = [forest = made.get(), verify = keep(verify)] {
    nb::gil_scoped_acquire gil;
    const nb::handle call(static_cast<const PyObject*>(verify.get()));
    if (!call.is_none()) call();
    std::optional<std::string> flaw;
    {
      nb::gil_scoped_release release;
      const gb::Forest::Exclusive lock(*forest);
      flaw = gb::find_flaw(*forest, !call.is_none(), 2);
    }
    if (flaw) throw std::invalid_argument(*flaw);
  };
  return made;
}

}  // namespace

NB_MODULE(_engine, m) {
  m.doc() = "The C++ engine of graftboost.";

  nb::class_<SparseTable>(m, "SparseTable", "A table that is mostly zeros, as the engine reads it.")
      .def(nb::init<SparseTable::Begin, SparseTable::Columns, SparseTable::Values, std::size_t>(),
           "begin"_a, "columns"_a, "values"_a, "n_columns"_a);

  nb::class_<gb::BinMap>(m, "BinMap", "How raw values become codes. Never changes once fitted.")
      .def_static("fit", &fit_bins, "X"_a, "row_ids"_a.none(), "n_categories"_a, "max_bins"_a,
                  "split_sample"_a, "width"_a, "bin_edges"_a, "seed"_a, "n_threads"_a,
                  "rare_below"_a = 0)
      .def_prop_ro("n_features", &gb::BinMap::n_features)
      .def(
          "edges", [](const gb::BinMap& b, std::size_t f) { return to_numpy(b[f].edges); },
          "feature"_a, "Ascending edges; a value at or below an edge lies left of it.")
      .def(
          "n_categories", [](const gb::BinMap& b, std::size_t f) { return b[f].n_categories; },
          "feature"_a)
      .def_prop_ro(
          "cut", [](const gb::BinMap& b) { return to_numpy(b.cut().columns()); },
          nb::rv_policy::automatic,
          "The columns that have cuts of their own, ascending: all but the rare ones.")
      .def_prop_ro(
          "categorical",
          [](const gb::BinMap& b) {
            std::map<std::uint32_t, std::uint32_t> counts;
            for (std::size_t i = 0; i < b.cut().size(); ++i) {
              if (b.features()[i].categorical()) counts[b.cut()[i]] = b.features()[i].n_categories;
            }
            return counts;
          },
          "The number of categories of each categorical column.")
      .def(
          "n_codes", [](const gb::BinMap& b, std::size_t f) { return b[f].n_codes(); }, "feature"_a)
      .def(
          "encode",
          [](const gb::BinMap& b, const AnyTable& x) {
            std::vector<gb::Code> codes;
            with_values(x, [&](const auto& values) {
              gb::check_columns(values.columns, b);
              for (std::uint32_t r = 0; r < values.rows; ++r) {
                for (std::uint32_t f = 0; f < values.columns; ++f)
                  codes.push_back(b[f].code(values.at(r, f)));
              }
            });
            return to_numpy<gb::Code, 2>(std::move(codes), {n_rows_of(x), b.n_features()});
          },
          "X"_a, "The code of every cell: 0 is missing, intervals and categories follow.");

  nb::class_<gb::UpdateCounts>(m, "UpdateCounts", "What an update did.")
      .def_ro("refitted", &gb::UpdateCounts::refitted)
      .def_ro("trees_touched", &gb::UpdateCounts::trees_touched)
      .def_ro("nodes_checked", &gb::UpdateCounts::nodes_checked)
      .def_ro("nodes_retrained", &gb::UpdateCounts::nodes_retrained)
      .def_ro("rows_retrained", &gb::UpdateCounts::rows_retrained)
      .def_ro("nodes_shifted", &gb::UpdateCounts::nodes_shifted)
      .def_ro("work", &gb::UpdateCounts::work)
      .def_ro("seconds_checking", &gb::UpdateCounts::seconds_checking)
      .def_ro("seconds_mending", &gb::UpdateCounts::seconds_mending)
      .def_ro("seconds_refitting", &gb::UpdateCounts::seconds_refitting)
      .def_ro("rows_shifted", &gb::UpdateCounts::rows_shifted);

  nb::class_<gb::Forest>(m, "Forest", "The trees, the rows they hold and the online state.")
      .def_static(
          "fit",
          [](const gb::BinMap& bins, AnyTable x, Doubles y, std::optional<Doubles> weight,
             std::optional<Integers> row_ids, const std::string& loss, int n_classes,
             int n_estimators, double learning_rate, int max_leaf_nodes, int min_samples_leaf,
             double l2_regularization, double subsample, std::uint64_t seed, bool updatable,
             int n_threads, std::optional<AnyTable> x_val, std::optional<Doubles> y_val,
             std::optional<Doubles> weight_val, int n_iter_no_change, double tol,
             nb::object on_iteration, std::size_t stats_memory) {
            return fit_forest({bins,
                               x,
                               y,
                               weight,
                               row_ids,
                               loss_kind(loss),
                               n_classes,
                               {n_estimators, learning_rate, max_leaf_nodes, min_samples_leaf,
                                l2_regularization, subsample, seed, updatable},
                               stats_memory,
                               n_threads,
                               x_val,
                               y_val,
                               weight_val,
                               {n_iter_no_change, tol}},
                              std::move(on_iteration));
          },
          "bins"_a, "X"_a, "y"_a, "sample_weight"_a.none(), "row_ids"_a.none(), "loss"_a,
          "n_classes"_a, "n_estimators"_a, "learning_rate"_a, "max_leaf_nodes"_a,
          "min_samples_leaf"_a, "l2_regularization"_a, "subsample"_a, "seed"_a, "updatable"_a,
          "n_threads"_a, "X_val"_a = nb::none(), "y_val"_a = nb::none(),
          "sample_weight_val"_a = nb::none(), "n_iter_no_change"_a = 0, "tol"_a = 0.0,
          "on_iteration"_a = nb::none(), "stats_memory"_a = std::numeric_limits<std::size_t>::max())
      .def_prop_rw(
          "stats_memory",
          [](const gb::Forest& f) { return at_rest(f, [&] { return f.stats_memory; }); },
          [](gb::Forest& f, std::size_t bytes) { at_rest(f, [&] { f.stats_memory = bytes; }); },
          "Bytes that the sums of nodes may take; what they take now is changed by updates only.")
      .def_prop_ro(
          "bins", [](const gb::Forest& f) -> const gb::BinMap& { return *f.bins; },
          nb::rv_policy::reference_internal)
      .def_prop_ro("n_rows",
                   [](const gb::Forest& f) { return at_rest(f, [&] { return f.rows.size(); }); })
      .def_prop_ro(
          "n_changes", [](const gb::Forest& f) { return at_rest(f, [&] { return f.n_changes; }); },
          "Updates, refits and refreshes that were made since the object was.")
      .def_prop_ro("n_trees",
                   [](const gb::Forest& f) { return at_rest(f, [&] { return f.trees.size(); }); })
      .def_prop_ro("n_iterations",
                   [](const gb::Forest& f) { return at_rest(f, [&] { return f.n_iterations(); }); })
      .def_prop_ro(
          "trees_per_iteration",
          [](const gb::Forest& f) { return at_rest(f, [&] { return f.trees_per_iteration(); }); })
      .def_prop_ro("updatable", [](const gb::Forest& f) { return f.params.updatable; })
      .def_prop_ro(
          "base_scores",
          [](const gb::Forest& f) { return to_numpy(at_rest(f, [&] { return f.base_scores; })); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "validation_losses",
          [](const gb::Forest& f) {
            return to_numpy(at_rest(f, [&] { return f.validation_losses; }));
          },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "row_ids",
          [](const gb::Forest& f) {
            return to_numpy(at_rest(f, [&] {
              return std::vector<std::int64_t>(f.rows.ids.begin(), f.rows.ids.end());
            }));
          },
          nb::rv_policy::automatic)
      .def("raw_scores", &raw_scores, "X"_a, "n_threads"_a, "first"_a = 0, "last"_a = -1,
           "Scores of iterations [first, last); those of iteration 0 include the base score.")
      .def("apply", &apply, "X"_a, "n_threads"_a, "The leaf id of every row in every tree.")
      .def("gain_importances",
           [](const gb::Forest& f) {
             return to_numpy(at_rest(f, [&] { return f.gain_importances(); }));
           })
      .def(
          "check_state",
          [](const gb::Forest& f, int n_threads) {
            look_first(f);
            const auto fault = at_rest(f, [&] { return f.find_fault(n_threads); });
            if (fault)
              throw std::runtime_error("the state of the model is not that of its rows: " + *fault);
          },
          "n_threads"_a,
          "Count every stored sum again from the rows; raise RuntimeError if one differs.")
      .def("update", &update, "X"_a.none(), "y"_a.none(), "sample_weight"_a.none(),
           "row_ids"_a.none(), "removed"_a, "relabel"_a, "n_classes"_a, "rule"_a, "tolerance"_a,
           "places"_a, "n_threads"_a, "removed_argument"_a = "row_ids",
           "Add and remove rows in one pass.")
      .def(
          "refit",
          [](gb::Forest& f, int n_threads) {
            look_first(f);
            nb::gil_scoped_release release;
            const gb::Forest::Exclusive lock(f);
            f.refit(n_threads);
            f.publish_change();
          },
          "n_threads"_a, "Train all again from the rows held.")
      .def(
          "refresh",
          [](gb::Forest& f, int n_threads) {
            if (!f.params.updatable) throw nb::value_error("the model is not updatable");
            look_first(f);
            nb::gil_scoped_release release;
            const gb::Forest::Exclusive lock(f);
            gb::refresh(f, n_threads);
            f.publish_change();
          },
          "n_threads"_a, "Leaf values as the present trees give them on the rows held.")
      .def("tree", &describe_tree, "t"_a, "The nodes of a tree, one array per property.")
      .def("splits", &describe_splits, "t"_a,
           "How the splits of a tree stand among their candidates, one array per property.")
      .def(
          "held_codes",
          [](const gb::Forest& f, std::uint32_t feature) {
            look_first(f);
            if (feature >= f.bins->n_features()) throw nb::index_error("there is no such feature");
            return to_numpy(at_rest(f, [&] { return gb::held_codes(f, feature); }));
          },
          "feature"_a, "Which codes of a feature the rows held have: 1 where one has it.")
      .def("held_rows", &held_rows, "row_ids"_a,
           "RowTable that the model holds, in the order of their ids: where the cells of each begin, "
           "columns "
           "and codes of those that do not have the code of 0, and targets.")
      .def(
          "recorded",
          [](const gb::Forest& f, std::size_t t) {
            return to_numpy(with_state(f, t, [](const gb::TreeState& state) {
              return std::vector<gb::Gradient>(state.recorded.begin(), state.recorded.end());
            }));
          },
          "t"_a, "The gradient that each row recorded in a tree.")
      .def(
          "leaf_ids",
          [](const gb::Forest& f, std::size_t t) {
            return to_numpy(with_state(f, t, [&](const gb::TreeState& state) {
              std::vector<std::int32_t> ids(f.rows.size());
              state.leaf_ids.visit(
                  [&](const auto* from) { std::copy_n(from, ids.size(), ids.begin()); });
              return ids;
            }));
          },
          "t"_a, "The leaf that each row is in, in a tree.")
      .def(
          "__deepcopy__",
          [](const gb::Forest& f, const nb::object&) {
            look_first(f);
            return at_rest(f, [&] { return f.copy(); });
          },
          "memo"_a)
      .def(
          "summary",
          [](const gb::Forest& f, bool state, bool room) {
            return describe_summary(at_rest(f, [&] { return gb::summary_of(f, state, room); }));
          },
          "state"_a, "room"_a, "What there is to know of a model besides its parts.")
      .def("parts", &describe_parts, "state"_a, "room"_a,
           "Its arrays: name, elements from one piece to the next, pieces. Without state, those "
           "that "
           "predictions need.")
      .def_static("put_together", &put_together, "summary"_a, "parts"_a, "verify"_a.none(),
                  "A model from its summary and parts, which it works on in place. What the state "
                  "holds is looked at before it is used for the first time, after a call of "
                  "verify, if there "
                  "is one; gradients that cannot do harm only then.");

  // nanobind finds instances, and what they keep alive, by tables that only grow, and ends the process if
  // there is no memory for that. They have room for this many from here on.
  std::vector<gb::UpdateCounts> many(1000);
  nb::list instances;
  for (gb::UpdateCounts& counts : many)
    instances.append(nb::cast(counts, nb::rv_policy::reference_internal, m));
}
