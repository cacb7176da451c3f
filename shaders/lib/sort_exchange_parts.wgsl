// Items of a tile by their ranks, through workgroup memory that holds a part of them at a time.
    var new_{{ items_of.name }}: array<{{ "u32" if items_of.words == 1 else "vec2<u32>" }}, ITEMS>;
//$ for part in range(parts)
    stage_{{ items_of.name }}({{ part }}u);
//$ for k in range(items)
    if (tile_position({{ k }}u) - {{ part }}u * PART < PART) {
      new_{{ items_of.name }}[{{ k }}] = staged_{{ items_of.name }}(tile_position({{ k }}u) - {{ part }}u * PART);
    }
//$ endfor
    workgroupBarrier();
//$ endfor
    {{ items_of.name }} = new_{{ items_of.name }};
