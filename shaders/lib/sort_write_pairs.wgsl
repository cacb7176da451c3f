// Keys and their values: where a key went, its value goes when it is staged.
fn write_{{ place }}(tile: u32, source: u32{{ ", last: bool" if decodes }}) {
  let valid = min(TILE, {{ used.n }} - tile * TILE);
//$ for part in range(parts)
//$ if part > 0
  workgroupBarrier();
  stage_keys({{ part }}u);
//$ endif
//$ for K in range(part * (items // parts), (part + 1) * (items // parts))
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    let key = staged_keys({{ K % (items // parts) }}u * WORKGROUP_SIZE + lane);
    let to = atomicLoad(&run_offsets[ranked_digit(key)]) + {{ K }}u * WORKGROUP_SIZE + lane;
    store_keys_{{ place }}(to, {{ stored }});
    destinations[{{ K % (items // parts) }}] = to;
  }
//$ endfor
  workgroupBarrier();
  stage_values({{ part }}u, tile, source);
//$ for K in range(part * (items // parts), (part + 1) * (items // parts))
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    store_values_{{ place }}(destinations[{{ K % (items // parts) }}], staged_values({{ K % (items // parts) }}u * WORKGROUP_SIZE + lane));
  }
//$ endfor
//$ endfor
}
