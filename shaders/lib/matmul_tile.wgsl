// Which tile of the output a workgroup computes.
  let group = block / (GROUP * params.tiles_n);
  let within = block - group * GROUP * params.tiles_n;
  let height = min(GROUP, params.tiles_m - group * GROUP);
  let row = (group * GROUP + within % height) * TILE_M;
  let column = within / height * TILE_N;
