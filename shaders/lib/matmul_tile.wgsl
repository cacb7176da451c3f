// Which tile of the output a workgroup computes.
  let block = workgroup_index(workgroup, grid);
  if (block >= params.tiles_m * params.tiles_n) { return; }
  let group = block / (GROUP * params.tiles_n);
  let within = block - group * GROUP * params.tiles_n;
  let height = min(GROUP, params.tiles_m - group * GROUP);
  let row = (group * GROUP + within % height) * TILE_M;
  let column = within / height * TILE_N;
