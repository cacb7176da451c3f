// output[k] = entry k of all tables, combined. Several invocations share an entry, and take the tables in turn.
// Forward progress: no workgroup waits for another. Bindings: params, tables, output.

struct Params {
  bins: u32,
  tables: u32,  // how many there are
  blocks: u32,  // workgroups that have work
  identity_bits: u32,
  {{ fields.values() | join("
  ") }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/operator.wgsl"
override WORKGROUP_SIZE: u32 = 256u;
const COLUMNS: u32 = {{ columns }}u;  // entries of a workgroup
var<workgroup> sums: array<Acc, WORKGROUP_SIZE>;

// An entry of a table; behind the last one the identity.
fn entry(table: u32, k: u32) -> Acc {
  if (table >= params.tables) { return identity(); }
  return unpack(load_tables(table * params.bins + k));
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let block = workgroup_index(workgroup, grid);
  if (block >= params.blocks) { return; }
  let rows = WORKGROUP_SIZE / COLUMNS;
  let k = block * COLUMNS + local % COLUMNS;
  var sum = quad_of(identity());
  if (k < params.bins) {
    // Four loads in flight.
    for (var table = local / COLUMNS; table < params.tables; table += 4u * rows) {
      sum = combine4(
        sum,
        Quad(entry(table, k), entry(table + rows, k), entry(table + 2u * rows, k), entry(table + 3u * rows, k)),
      );
    }
  }
  sums[local] = combine(combine(sum.x, sum.y), combine(sum.z, sum.w));
  for (var d = WORKGROUP_SIZE / 2u; d >= COLUMNS; d >>= 1u) {
    workgroupBarrier();
    if (local < d) { sums[local] = combine(sums[local], sums[local + d]); }
  }
  if (local < COLUMNS && k < params.bins) { store_output(k, lower(sums[local])); }
}
