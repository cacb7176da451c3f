// Fields of Params that an operator needs: its identity, as bits, and a zero that no compiler knows.
  identity_bits: u32,
//$ for k in range(1, acc.words)
  identity_bits_{{ k }}: u32,
//$ endfor
//$ if fixed_order
  zero: u32,  // see lib/seal.wgsl
//$ endif
