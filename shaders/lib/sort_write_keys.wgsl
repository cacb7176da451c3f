// Writes the ranked keys of a tile, whose first part is staged, to one place: the output or the temporary copy. There are no
// values.
fn write_{{ place }}(tile: u32{{ ", last: bool" if decodes }}) {
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
  }
//$ endfor
//$ endfor
}
