// The keys of a part, and where each went.
fn write_keys_{{ place }}{{ fixed }}_{{ part }}(valid: u32{{ ", last: bool" if decodes }}) {
//$ for K in range(part * (items // parts), (part + 1) * (items // parts))
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    let key = staged_keys({{ K % (items // parts) }}u * WORKGROUP_SIZE + lane);
    let to = atomicLoad(&run_offsets[key_digit({{ "key_fixed(key)" if fixed else "key" }})]) + {{ K }}u * WORKGROUP_SIZE + lane;
    store_keys_{{ place }}(to, {{ stored }});
    destinations[{{ K % (items // parts) }}] = to;
  }
//$ endfor
}
