// Fields of Params: how many keys there are, and of a sort which sorted runs are merged.
//$ if runs
  n: u32,  // keys
//$ include "lib/params_counted.wgsl"
  run_items: u32,  // keys of a sorted run
  pair_items: u32,  // of two runs, a multiple of a tile; or more than all keys
//$ else
  n_a: u32,  // keys
  n_b: u32,
  capacity_a: u32,  // keys that there is room for
  capacity_b: u32,
//$ endif
