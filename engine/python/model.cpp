#include "model/model.hpp"

#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "python/bindings.hpp"
#include "python/model_arrays.hpp"
#include "python/shards.hpp"
#include "remote/node_half.hpp"

namespace graftboost::python {
namespace {

// Reads something of a model while nothing changes it. Python goes on while an update is waited
// for.
template <class Use>
auto read(const gb::Model& model, Use&& use) {
  nb::gil_scoped_release release;
  return model.read(std::forward<Use>(use));
}
template <class Use>
auto read_verified(const gb::Model& model, Use&& use) {
  nb::gil_scoped_release release;
  return model.read_verified(std::forward<Use>(use));
}

// --- fitting -------------------------------------------------------------------------------------

// Checks for Ctrl-C now and then, and calls the caller's function after every iteration.
class Listener {
 public:
  explicit Listener(nb::object on_iteration) : on_iteration_(std::move(on_iteration)) {}

  bool operator()(int done, double loss) {
    const auto now = std::chrono::steady_clock::now();
    const bool called = !on_iteration_.is_none();
    if (!called && now - last_check_ < std::chrono::milliseconds(100)) return false;
    last_check_ = now;
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return called && nb::cast<bool>(on_iteration_(done, loss));
  }

 private:
  nb::object on_iteration_;
  std::chrono::steady_clock::time_point last_check_ = std::chrono::steady_clock::now();
};

void init_fit_params(gb::FitParams* self, const std::string& loss, int n_classes, int n_estimators,
                     double learning_rate, int max_leaf_nodes, int min_samples_leaf,
                     double min_hessian, double l2_regularization, double subsample,
                     std::uint64_t seed, bool updatable, int n_iter_no_change, double tol,
                     std::size_t histogram_memory, std::size_t n_shards) {
  if (n_shards == 0) throw nb::value_error("n_shards: expected at least 1");
  new (self) gb::FitParams{loss_kind(loss),
                           n_classes,
                           {n_estimators, learning_rate, max_leaf_nodes, min_samples_leaf,
                            min_hessian, l2_regularization, subsample, seed, updatable},
                           histogram_memory,
                           {n_iter_no_change, tol},
                           n_shards};
}

std::unique_ptr<gb::Model> fit(const gb::BinMap& bins, const AnyTable& x, const Doubles& y,
                               const std::optional<Doubles>& weight,
                               const std::optional<Integers>& row_ids, const gb::FitParams& params,
                               int n_threads, const std::optional<AnyTable>& x_val,
                               const std::optional<Doubles>& y_val,
                               const std::optional<Doubles>& weight_val, nb::object on_iteration) {
  Listener listener(std::move(on_iteration));
  return with_table(x, [&]<class Table>(const Table& table) {
    const gb::Sample<Table> sample{
        table, {y.data(), y.size()}, view<double>(weight), view<std::int64_t>(row_ids)};
    gb::Sample<Table> validation;
    if (x_val) {
      with_table(*x_val, [&]<class Other>(const Other& held_out) {
        if constexpr (std::is_same_v<Table, Other>) {
          validation = {held_out, view<double>(y_val), view<double>(weight_val), {}};
        } else {
          throw nb::type_error("X_val: expected the same kind of table and dtype as X");
        }
      });
    }
    nb::gil_scoped_release release;
    return gb::Model::fit(std::make_shared<const gb::BinMap>(bins), sample,
                          x_val ? &validation : nullptr, params, std::ref(listener), n_threads);
  });
}

// The same for rows that shards hold: exchange(message, phase) as of find_bins.
std::unique_ptr<gb::Model> fit_remote(const gb::BinMap& bins, nb::object exchange,
                                      const gb::FitParams& params, int n_threads,
                                      const std::optional<AnyTable>& x_val,
                                      const std::optional<Doubles>& y_val,
                                      const std::optional<Doubles>& weight_val,
                                      nb::object on_iteration) {
  Listener listener(std::move(on_iteration));
  auto rows = std::make_shared<gb::RemoteRows>(exchange_by(std::move(exchange)));
  const auto fit_with = [&]<class Table>(const gb::Sample<Table>* validation) {
    nb::gil_scoped_release release;
    return gb::Model::fit(std::make_shared<const gb::BinMap>(bins), std::move(rows), validation,
                          params, std::ref(listener), n_threads);
  };
  if (!x_val) return fit_with(static_cast<const gb::Sample<gb::DenseTable<double>>*>(nullptr));
  return with_table(*x_val, [&]<class Table>(const Table& held_out) {
    const gb::Sample<Table> validation{held_out, view<double>(y_val), view<double>(weight_val), {}};
    return fit_with(&validation);
  });
}

// --- changes -------------------------------------------------------------------------------------

gb::UpdateRule::Kind rule_kind(const std::string& name) {
  using Kind = gb::UpdateRule::Kind;
  if (name == "fidelity") return Kind::fidelity;
  if (name == "regret") return Kind::regret;
  if (name == "rank") return Kind::rank;
  throw nb::value_error("rule: expected fidelity, regret or rank");
}

gb::UpdateCounts update(gb::Model& model, const std::optional<AnyTable>& x,
                        const std::optional<Doubles>& y, const std::optional<Doubles>& weight,
                        const std::optional<Integers>& row_ids, const Integers& removed,
                        const Integers& relabel, int n_classes, const std::string& rule,
                        double tolerance, std::int64_t n_top, double fidelity, double memory_floor,
                        bool regrow, int n_threads, const std::string& removed_argument) {
  const gb::UpdateRule update_rule{rule_kind(rule), tolerance,    n_top,
                                   fidelity,        memory_floor, !regrow};
  if (!regrow && update_rule.kind != gb::UpdateRule::Kind::fidelity)
    throw nb::value_error("regrow: only the rule fidelity regrows nodes later");
  std::vector<std::int32_t> labels;
  for (std::size_t k = 0; k < relabel.size(); ++k)
    labels.push_back(
        static_cast<std::int32_t>(std::clamp<std::int64_t>(relabel(k), -1, INT32_MAX)));
  const auto run = [&]<class Table>(const gb::Sample<Table>* added) {
    const gb::UpdateRequest<Table> request{
        added, {removed.data(), removed.size()}, removed_argument, labels, n_classes};
    nb::gil_scoped_release release;
    return model.update(request, update_rule, n_threads);
  };
  if (!x) return run(static_cast<const gb::Sample<gb::DenseTable<double>>*>(nullptr));
  return with_table(*x, [&]<class Table>(const Table& table) {
    const gb::Sample<Table> added{table, view<double>(y), view<double>(weight),
                                  view<std::int64_t>(row_ids)};
    return run(&added);
  });
}

gb::UpdateRule fidelity_rule(double fidelity, double memory_floor) {
  return {gb::UpdateRule::Kind::fidelity, 0, 1, fidelity, memory_floor};
}

gb::UpdateCounts regrow(gb::Model& model, double work, double fidelity, double memory_floor,
                        int n_threads) {
  const gb::UpdateRule rule = fidelity_rule(fidelity, memory_floor);
  nb::gil_scoped_release release;
  return model.regrow(rule, work, n_threads);
}

gb::PendingSurvey pending(gb::Model& model, double fidelity, double memory_floor, int n_threads) {
  const gb::UpdateRule rule = fidelity_rule(fidelity, memory_floor);
  nb::gil_scoped_release release;
  return model.pending(rule, n_threads);
}

nb::tuple memory_of(gb::Model& model, const Integers& row_ids, double fidelity, double memory_floor,
                    int n_threads, const std::string& argument) {
  if (!(fidelity > 0)) throw nb::value_error("fidelity: expected more than 0");
  const gb::UpdateRule rule = fidelity_rule(fidelity, memory_floor);
  const gb::MemorySurvey found = [&] {
    nb::gil_scoped_release release;
    return model.memory_of({row_ids.data(), row_ids.size()}, argument, rule, n_threads);
  }();
  return nb::make_tuple(
      python::to_numpy(std::vector<double>(found.memory.begin(), found.memory.end())), found.work);
}

// --- predictions ---------------------------------------------------------------------------------

template <class T>
auto to_numpy(gb::Columns<T> columns, std::size_t n_rows) {
  return python::to_numpy<T, 2>(std::move(columns.values), {n_rows, columns.per_row});
}

auto raw_scores(const gb::Model& model, const AnyTable& x, int n_threads, int first, int last) {
  gb::Columns<double> scores;
  with_table(x, [&](const auto& table) {
    nb::gil_scoped_release release;
    scores = model.scores(table, first, last, n_threads);
  });
  return to_numpy(std::move(scores), n_rows_of(x));
}

auto apply(const gb::Model& model, const AnyTable& x, int n_threads) {
  gb::Columns<std::int32_t> ids;
  with_table(x, [&](const auto& table) {
    nb::gil_scoped_release release;
    ids = model.leaf_ids(table, n_threads);
  });
  return to_numpy(std::move(ids), n_rows_of(x));
}

// --- reading -------------------------------------------------------------------------------------

nb::dict describe_tree(gb::Model& model, std::size_t t) {
  const std::vector<gb::Node> nodes = [&] {
    nb::gil_scoped_release release;
    return model.tree_nodes(t);
  }();
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
  tree["deferred_n"] = column(nodes, [](const Node& n) { return n.deferred.n; });
  tree["deferred_recorded"] = column(nodes, [](const Node& n) { return n.deferred.recorded; });
  tree["deferred_last"] = column(nodes, [](const Node& n) { return n.deferred.last; });
  return tree;
}

// What `use` returns for an updatable model that has the tree.
template <class Use>
auto read_tree(const gb::Model& model, std::size_t t, Use&& use) {
  auto result = read_verified(model, [&](const gb::ModelState& state) {
    const bool exists = state.params.updatable && t < state.nodes.size();
    return exists ? std::optional(use(state)) : std::nullopt;
  });
  if (!result) throw nb::index_error("t: there is no such tree, or the model is not updatable");
  return *std::move(result);
}

nb::dict describe_splits(const gb::Model& model, std::size_t t) {
  const std::vector<gb::SplitRank> ranks =
      read_tree(model, t, [&](const gb::ModelState& state) { return gb::rank_splits(state, t); });
  using Rank = gb::SplitRank;
  nb::dict splits;
  splits["node"] = column(ranks, [](const Rank& r) { return r.node; });
  splits["n_better"] = column(ranks, [](const Rank& r) { return r.n_better; });
  splits["gain"] = column(ranks, [](const Rank& r) { return r.gain; });
  splits["other_gain"] = column(ranks, [](const Rank& r) { return r.other_gain; });
  splits["left_score"] = column(ranks, [](const Rank& r) { return r.left_score; });
  splits["right_score"] = column(ranks, [](const Rank& r) { return r.right_score; });
  splits["left_rows"] = column(ranks, [](const Rank& r) { return r.left_rows; });
  splits["right_rows"] = column(ranks, [](const Rank& r) { return r.right_rows; });
  splits["next_gain"] = column(ranks, [](const Rank& r) { return r.next_gain; });
  splits["next_rows"] = column(ranks, [](const Rank& r) { return r.next_rows; });
  return splits;
}

nb::tuple held_rows(gb::Model& model, const Integers& row_ids) {
  gb::HeldRows held = [&] {
    nb::gil_scoped_release release;
    return model.held_rows({row_ids.data(), row_ids.size()});
  }();
  return nb::make_tuple(
      python::to_numpy(std::move(held.begin)), python::to_numpy(std::move(held.columns)),
      python::to_numpy(std::move(held.codes)), python::to_numpy(std::move(held.target)));
}

auto held_codes(const gb::Model& model, std::uint32_t feature) {
  if (feature >= model.bins().n_features()) throw nb::index_error("there is no such feature");
  return python::to_numpy(read_verified(
      model, [&](const gb::ModelState& state) { return gb::held_codes(state, feature); }));
}

// One value of every row, in the order of row_ids.
template <class T, class Of>
std::vector<T> of_rows(const gb::ModelState& state, Of&& of) {
  std::vector<T> values;
  values.reserve(state.n_rows());
  for (const gb::RowShard& shard : state.shards)
    for (gb::Slot row = 0; row < shard.size(); ++row) values.push_back(of(shard, row));
  return values;
}

auto row_ids(const gb::Model& model) {
  return python::to_numpy(read(model, [](const gb::ModelState& state) {
    if (state.elsewhere) return state.elsewhere->ids();
    return of_rows<std::int64_t>(
        state, [](const gb::RowShard& shard, gb::Slot row) { return shard.rows.ids[row]; });
  }));
}

auto recorded(const gb::Model& model, std::size_t t) {
  return python::to_numpy(read_tree(model, t, [&](const gb::ModelState& state) {
    return of_rows<gb::Gradient>(state, [&](const gb::RowShard& shard, gb::Slot row) {
      return shard.trees[t].recorded[row];
    });
  }));
}

auto leaf_ids(const gb::Model& model, std::size_t t) {
  return python::to_numpy(read_tree(model, t, [&](const gb::ModelState& state) {
    return of_rows<std::int32_t>(state, [&](const gb::RowShard& shard, gb::Slot row) {
      return static_cast<std::int32_t>(shard.trees[t].leaf_ids[row]);
    });
  }));
}

}  // namespace

void bind_model(nb::module_& m) {
  using gb::Model;
  using gb::ModelState;
  nb::class_<gb::FitParams>(m, "FitParams", "How a model is fitted.")
      .def("__init__", &init_fit_params, "loss"_a, "n_classes"_a, "n_estimators"_a,
           "learning_rate"_a, "max_leaf_nodes"_a, "min_samples_leaf"_a, "min_hessian"_a,
           "l2_regularization"_a, "subsample"_a, "seed"_a, "updatable"_a, "n_iter_no_change"_a = 0,
           "tol"_a = 0.0, "histogram_memory"_a = std::numeric_limits<std::size_t>::max(),
           "n_shards"_a = 1)
      .def_prop_ro(
          "loss",
          [](const gb::FitParams& params) {
            return loss_names[static_cast<std::size_t>(params.loss)];
          },
          "The name of the loss.")
      .def_ro("n_classes", &gb::FitParams::n_classes, "1 for a regression.");
  nb::class_<Model>(m, "EngineModel", "The trees, the rows they hold and the recorded state.")
      .def_static("fit", &fit, "bins"_a, "X"_a, "y"_a, "sample_weight"_a.none(), "row_ids"_a.none(),
                  "params"_a, "n_threads"_a, "X_val"_a = nb::none(), "y_val"_a = nb::none(),
                  "sample_weight_val"_a = nb::none(), "on_iteration"_a = nb::none())
      .def_static("fit_remote", &fit_remote, "bins"_a, "exchange"_a, "params"_a, "n_threads"_a,
                  "X_val"_a = nb::none(), "y_val"_a = nb::none(),
                  "sample_weight_val"_a = nb::none(), "on_iteration"_a = nb::none(),
                  "Fit a model to rows that shards hold.")
      .def(
          "attach",
          [](Model& model, nb::object exchange) {
            auto rows = std::make_shared<gb::RemoteRows>(exchange_by(std::move(exchange)));
            nb::gil_scoped_release release;
            model.attach(std::move(rows));
          },
          "exchange"_a, "Let shards hold the rows of a model that was saved without rows.")
      .def("gather", &Model::gather, nb::call_guard<nb::gil_scoped_release>(),
           "A model of its own with the rows that shards hold.")
      .def(
          "scatter",
          [](const Model& model, nb::object exchange) {
            gb::RemoteRows rows(exchange_by(std::move(exchange)));
            nb::gil_scoped_release release;
            model.scatter(rows);
          },
          "exchange"_a, "Give the rows to shards that were made from the node half.")
      .def(
          "node_half",
          [](const Model& model) {
            const gb::Bytes bytes = read_verified(
                model, [](const ModelState& state) { return gb::write_node_half(state); });
            return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          },
          "The model without its rows and bins, as bytes.")
      .def_static(
          "from_node_half",
          [](const gb::BinMap& bins, const nb::bytes& bytes) {
            return std::make_unique<Model>(gb::read_node_half(
                std::make_shared<const gb::BinMap>(bins),
                {reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()}));
          },
          "bins"_a, "node_half"_a, "A model without rows, to which shards are attached.")
      .def_prop_rw(
          "histogram_memory",
          [](const Model& model) {
            return read(model, [](const ModelState& state) { return state.histogram_memory; });
          },
          [](Model& model, std::size_t bytes) {
            nb::gil_scoped_release release;
            model.set_histogram_memory(bytes);
          },
          "Bytes that cached histograms may take; only updates change what they take now.")
      .def_prop_ro("bins", &Model::bins, nb::rv_policy::reference_internal)
      .def_prop_ro("n_rows",
                   [](const Model& model) {
                     return read(model, [](const ModelState& state) { return state.n_rows(); });
                   })
      .def_prop_ro(
          "n_changes",
          [](const Model& model) {
            nb::gil_scoped_release release;
            return model.n_changes();
          },
          "Updates, refits and refreshes since the object was made.")
      .def_prop_ro("n_trees",
                   [](const Model& model) {
                     return read(model, [](const ModelState& state) { return state.nodes.size(); });
                   })
      .def_prop_ro("n_iterations",
                   [](const Model& model) {
                     return read(model,
                                 [](const ModelState& state) { return state.n_iterations(); });
                   })
      .def_prop_ro(
          "trees_per_iteration",
          [](const Model& model) {
            return read(model, [](const ModelState& state) { return state.trees_per_iteration(); });
          })
      .def_prop_ro("updatable", &Model::updatable)
      .def_prop_ro(
          "base_scores",
          [](const Model& model) {
            return python::to_numpy(
                read(model, [](const ModelState& state) { return state.base_scores; }));
          },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "validation_losses",
          [](const Model& model) {
            return python::to_numpy(
                read(model, [](const ModelState& state) { return state.validation_losses; }));
          },
          nb::rv_policy::automatic)
      .def_prop_ro("row_ids", &row_ids, nb::rv_policy::automatic)
      .def("raw_scores", &raw_scores, "X"_a, "n_threads"_a, "first"_a = 0, "last"_a = -1,
           "Scores of iterations [first, last); those of iteration 0 include the base score.")
      .def("apply", &apply, "X"_a, "n_threads"_a, "The leaf id of every row in every tree.")
      .def("gain_importances",
           [](const Model& model) { return python::to_numpy(read(model, gb::gain_importances)); })
      .def("check_state", &Model::check_state, "n_threads"_a,
           nb::call_guard<nb::gil_scoped_release>(),
           "Recompute every stored sum from the rows; raise RuntimeError if one differs.")
      .def("update", &update, "X"_a.none(), "y"_a.none(), "sample_weight"_a.none(),
           "row_ids"_a.none(), "removed"_a, "relabel"_a, "n_classes"_a, "rule"_a, "tolerance"_a,
           "n_top"_a, "fidelity"_a, "memory_floor"_a, "regrow"_a, "n_threads"_a,
           "removed_argument"_a = "row_ids",
           "Add and remove rows in one pass. X is None if none are added. Without regrow, rows are "
           "only booked.")
      .def("regrow", &regrow, "work"_a, "fidelity"_a, "memory_floor"_a, "n_threads"_a,
           "Regrow nodes for rows that were only booked, and work on no more rows than this "
           "fraction of all rows in all trees.")
      .def("pending", &pending, "fidelity"_a, "memory_floor"_a, "n_threads"_a,
           "What there is to regrow for rows that were only booked.")
      .def_prop_ro("rows_deferred",
                   [](const Model& model) {
                     return read(model,
                                 [](const ModelState& state) { return state.deferred.n_rows(); });
                   })
      .def("memory_of", &memory_of, "row_ids"_a, "fidelity"_a, "memory_floor"_a, "n_threads"_a,
           "argument"_a = "row_ids",
           "What the model remembers of rows, and the work to forget them relative to a refit.")
      .def("refit", &Model::refit, "n_threads"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Train all trees again on the rows held.")
      .def("refresh", &Model::refresh, "n_threads"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Recompute leaf values on the rows held, keeping the structure.")
      .def("tree", &describe_tree, "t"_a, "The nodes of a tree, one array per property.")
      .def("splits", &describe_splits, "t"_a,
           "How the splits of a tree compare with other candidates, one array per property.")
      .def("held_codes", &held_codes, "feature"_a,
           "Which codes of a feature the rows held have: 1 where one has it.")
      .def("held_rows", &held_rows, "row_ids"_a,
           "Rows that the model holds, in the order of the ids: where the cells of each begin, "
           "columns and codes of the cells that do not have the code of 0, and targets.")
      .def("recorded", &recorded, "t"_a, "The gradient that each row recorded in a tree.")
      .def("leaf_ids", &leaf_ids, "t"_a, "The leaf of each row in a tree.")
      .def(
          "__deepcopy__",
          [](const Model& model, const nb::object&) {
            nb::gil_scoped_release release;
            return model.copy();
          },
          "memo"_a)
      .def("summary", &summary_of, "state"_a, "room"_a,
           "What there is to know of a model besides its arrays.")
      .def("arrays", &arrays_of, "state"_a, "room"_a,
           "The arrays: name, elements from one piece to the next, pieces. Without state, those "
           "that predictions need.")
      .def_static("from_arrays", &model_from, "summary"_a, "arrays"_a, "verify"_a.none(),
                  "A model from its summary and arrays, which it uses in place. Rows and state are "
                  "verified before their first use, after a call of verify, if there is one; "
                  "recorded gradients of unweighted models only then.");
}

}  // namespace graftboost::python
