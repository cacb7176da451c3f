// Keys and their values: where a key went, its value goes. Values are loaded once, into the registers that the last part's keys
// leave, and are in flight while those keys are written.
fn write_{{ place }}(tile: u32, source: u32{{ ", last: bool" if decodes }}) {
  let valid = min(TILE, {{ used.n }} - tile * TILE);
//$ for part in range(parts)
//$ if part > 0
  workgroupBarrier();
  stage_keys({{ part }}u);
//$ endif
//$ if loop.last
  read_values(tile, source);
//$ endif
//$ for K in range(part * (items // parts), (part + 1) * (items // parts))
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    let key = staged_keys({{ K % (items // parts) }}u * WORKGROUP_SIZE + lane);
    let to = atomicLoad(&run_offsets[ranked_digit(key)]) + {{ K }}u * WORKGROUP_SIZE + lane;
    store_keys_{{ place }}(to, {{ stored }});
    destinations[{{ K }}] = to;
  }
//$ endfor
//$ endfor
//$ for part in range(parts)
  workgroupBarrier();
  stage_values({{ part }}u);
//$ for K in range(part * (items // parts), (part + 1) * (items // parts))
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    store_values_{{ place }}(destinations[{{ K }}], staged_values({{ K % (items // parts) }}u * WORKGROUP_SIZE + lane));
  }
//$ endfor
//$ endfor
}
