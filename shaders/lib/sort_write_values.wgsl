// The staged values of a part go where their keys went.
fn write_values_{{ place }}_{{ part }}(valid: u32) {
//$ for K in range(part * (items // parts), (part + 1) * (items // parts))
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    store_values_{{ place }}(destinations[{{ K % (items // parts) }}], staged_values({{ K % (items // parts) }}u * WORKGROUP_SIZE + lane));
  }
//$ endfor
}
