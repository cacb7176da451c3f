// Writes the ranked keys of a tile, whose first part is staged, to one place: the output or the temporary copy. Where a key
// went, its value goes. Values are loaded once, into the registers that the last keys leave, while those are written.
fn write_{{ place }}(tile: u32, route: u32{{ ", to_output: bool" if together }}) {
  {{ "let last = (route >> 2u) == LAST;" if decodes }}
  let valid = min(TILE, {{ used.n }} - tile * TILE);
//$ for part in range(parts)
  {{ "workgroupBarrier(); stage_keys(%du);" % part if part > 0 }}
  {{ "read_values(tile, route & 3u);" if with_values and loop.last }}
//$ for K in range(part * rounds, (part + 1) * rounds)
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    let key = staged_keys({{ K % rounds }}u * WORKGROUP_SIZE + lane);
    let to = atomicLoad(&run_offsets[ranked_digit(key)]) + {{ K }}u * WORKGROUP_SIZE + lane;
//$ if key_bytes == 2
    // Whether the next key, and the one before, are of the same run: two halves of a word are stored together.
    let i = {{ K % rounds }}u * WORKGROUP_SIZE + lane;
    let next = staged_keys(min(i + 1u, PART - 1u));
    let joins = i + 1u < min(PART, valid - {{ part }}u * PART) && ranked_digit(next) == ranked_digit(key);
    let joined = i > 0u && ranked_digit(staged_keys(max(i, 1u) - 1u)) == ranked_digit(key);
    store_in_run_keys_{{ place }}(to, {{ stored }}, {{ stored | replace("(key)", "(next)") }}, joined, joins);
//$ else
    store_keys_{{ place }}({{ chosen }}to, {{ stored }});
//$ endif
    {{ "destinations[%d] = to;" % K if with_values }}
  }
//$ endfor
//$ endfor
//$ for part in range(parts if with_values else 0)
  workgroupBarrier();
  stage_values({{ part }}u);
//$ for K in range(part * rounds, (part + 1) * rounds)
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    store_values_{{ place }}({{ chosen }}destinations[{{ K }}], staged_values({{ K % rounds }}u * WORKGROUP_SIZE + lane));
  }
//$ endfor
//$ endfor
}
