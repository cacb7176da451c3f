// output[b, j, i] = input[b, i, j], of matrices with few columns or few rows: an invocation moves a whole row or column.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).
// Params: n (rows, or columns where those are many, of all matrices); rows; columns.

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"

fn run(at: u32) {
//$ set many, few = ("rows", "columns") if few_columns else ("columns", "rows")
  let begin = at / params.{{ many }} * params.rows * params.columns;
  let i = at % params.{{ many }};
  // Four at a time, loads before stores.
  for (var j = 0u; j < params.{{ few }}; j += 4u) {
//$ if few_columns and quads
    let items = load4_input(begin + i * params.columns + j);
    store_output(begin + (j + {{ k }}u) * params.rows + i, items.{{ "xyzw"[k] }});  //$ for k in range(4)
//$ elif quads
    store4_output(
      begin + i * params.rows + j,
      quad_of(
        load_input(begin + (j + {{ k }}u) * params.columns + i),  //$ for k in range(4)
      ),
    );
//$ else
//$ set source, sink_at = "i * params.columns + j_%d", "j_%d * params.rows + i"
//$ if not few_columns
//$ set source, sink_at = "j_%d * params.columns + i", "i * params.rows + j_%d"
//$ endif
//$ for k in range(4)
    let j_{{ k }} = min(j + {{ k }}u, params.{{ few }} - 1u);
    let item_{{ k }} = load_input(begin + {{ source % k }});
//$ endfor
    if (j_{{ k }} == j + {{ k }}u) { store_output(begin + {{ sink_at % k }}, item_{{ k }}); }  //$ for k in range(4)
//$ endif
  }
}
