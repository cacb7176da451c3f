// The number of a workgroup in a grid of up to three dimensions. A grid may have more workgroups than needed, so each
// kernel compares the number with its count of blocks or tiles.
fn workgroup_index(workgroup: vec3<u32>, grid: vec3<u32>) -> u32 {
  return workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
}
