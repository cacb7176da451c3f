// output[k] = entry k of all tables, combined. Several invocations share an entry, and take the tables in turn.
// Forward progress: no workgroup waits for another. Bindings: params, tables, output.
// Params: bins; tables (how many there are); blocks (workgroups that have work).

//$ include "lib/operator.wgsl"
const COLUMNS: u32 = {{ columns }}u;  // entries of a workgroup
var<workgroup> sums: array<Acc, WORKGROUP_SIZE>;

// An entry of a table; behind the last one the identity.
fn entry(table: u32, k: u32) -> Acc {
  if (table >= params.tables) { return identity(); }
  return unpack(load_tables(table * params.bins + k));
}

fn run(block: u32, local: u32) {
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
