// Items of the output, whose axis has params.{{ axis }} items: from where source_of(j) finds item j along the input's axis.
fn item_at(i: u32) -> Item {
  let at = i + params.first;
//$ if flat
  return load_input(source_of(at));
//$ else
  let row = at / params.inner;
  let outer = row / params.{{ axis }};
  return load_input((outer * params.length + source_of(row % params.{{ axis }})) * params.inner + at % params.inner);
//$ endif
}

//$ include "lib/quads.wgsl"
