// output[b, j, i] = input[b, i, j], of matrices with few columns or few rows: an invocation moves a whole row or column.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).

struct Params {
  n: u32,  // rows, or columns where those are many, of all matrices
  rows: u32,
  columns: u32,
  input_offset: u32,
  output_offset: u32,
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/quad.wgsl"
override WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let at = workgroup_index(workgroup, grid) * WORKGROUP_SIZE + local;
  if (at >= params.n) { return; }
//$ set many, few = ("rows", "columns") if few_columns else ("columns", "rows")
  let begin = at / params.{{ many }} * params.rows * params.columns;
  let i = at % params.{{ many }};
  // Four at a time, loads before stores.
  for (var j = 0u; j < params.{{ few }}; j += 4u) {
//$ if few_columns and quads
    let items = load4_input(begin + i * params.columns + j);
//$ for k in range(4)
    store_output(begin + (j + {{ k }}u) * params.rows + i, items.{{ "xyzw"[k] }});
//$ endfor
//$ elif quads
    store4_output(
      begin + i * params.rows + j,
      quad_of(
//$ for k in range(4)
        load_input(begin + (j + {{ k }}u) * params.columns + i),
//$ endfor
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
//$ for k in range(4)
    if (j_{{ k }} == j + {{ k }}u) { store_output(begin + {{ sink_at % k }}, item_{{ k }}); }
//$ endfor
//$ endif
  }
}
