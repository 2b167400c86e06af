#include <nanobind/stl/map.h>

#include <map>

#include "data/bins.hpp"
#include "data/sample.hpp"
#include "python/bindings.hpp"
#include "remote/encoding.hpp"

namespace graftboost::python {
namespace {}  // namespace

gb::GivenColumns given_columns(const nb::dict& n_categories, const nb::dict& bin_edges) {
  gb::GivenColumns given;
  for (const auto& [column, n] : n_categories)
    given.n_categories[nb::cast<std::uint32_t>(column)] = nb::cast<std::uint32_t>(n);
  for (const auto& [column, edges] : bin_edges) {
    auto& to = given.edges[nb::cast<std::uint32_t>(column)];
    for (const nb::handle edge : edges) to.push_back(nb::cast<double>(edge));
  }
  return given;
}

namespace {

gb::BinMap fit_bins(const AnyTable& x, const std::optional<Integers>& row_ids,
                    const nb::dict& n_categories, int max_bins, double split_sample, bool width,
                    const nb::dict& bin_edges, std::uint64_t seed, int n_threads,
                    std::size_t rare_below) {
  const gb::BinningParams params{max_bins, split_sample, width, seed, rare_below};
  const gb::GivenColumns given = given_columns(n_categories, bin_edges);
  return with_table(x, [&](const auto& table) {
    nb::gil_scoped_release release;
    return gb::BinMap::fit(table, view<std::int64_t>(row_ids), given, params, n_threads);
  });
}

std::map<std::uint32_t, std::uint32_t> categorical(const gb::BinMap& bins) {
  std::map<std::uint32_t, std::uint32_t> counts;
  for (std::size_t i = 0; i < bins.cut().size(); ++i) {
    if (bins.features()[i].categorical()) counts[bins.cut()[i]] = bins.features()[i].n_categories;
  }
  return counts;
}

auto encode(const gb::BinMap& bins, const AnyTable& x) {
  std::vector<gb::Code> codes;
  with_table(x, [&](const auto& table) {
    gb::check_columns(table.columns, bins);
    for (std::uint32_t r = 0; r < table.rows; ++r) {
      for (std::uint32_t f = 0; f < table.columns; ++f)
        codes.push_back(bins[f].code(table.at(r, f)));
    }
  });
  return to_numpy<gb::Code, 2>(std::move(codes), {n_rows_of(x), bins.n_features()});
}

}  // namespace

void bind_tables(nb::module_& m) {
  nb::class_<SparseArrays>(m, "SparseTable",
                           "A table that is mostly zeros, as the engine reads it.")
      .def(
          nb::init<SparseArrays::Begin, SparseArrays::Columns, SparseArrays::Values, std::size_t>(),
          "begin"_a, "columns"_a, "values"_a, "n_columns"_a);
}

void bind_bin_map(nb::module_& m) {
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
      .def_prop_ro("categorical", &categorical,
                   "The number of categories of each categorical column.")
      .def(
          "n_codes", [](const gb::BinMap& b, std::size_t f) { return b[f].n_codes(); }, "feature"_a)
      .def("__getstate__",
           [](const gb::BinMap& b) {
             gb::Writer writer;
             gb::write_bins(writer, b);
             const gb::Bytes& bytes = writer.bytes();
             return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
           })
      .def(
          "__setstate__",
          [](gb::BinMap* self, const nb::bytes& bytes) {
            gb::Reader reader({reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()});
            new (self) gb::BinMap(gb::read_bins(reader));
          })
      .def("encode", &encode, "X"_a,
           "The code of every cell: 0 is missing, intervals and categories follow.");
}

}  // namespace graftboost::python
