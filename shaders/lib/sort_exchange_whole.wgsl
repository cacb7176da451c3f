// Items of a tile by their ranks, through workgroup memory that holds all of them.
    stage_{{ items_of.name }}(0u);
    {{ items_of.name }}[{{ k }}] = staged_{{ items_of.name }}(tile_position({{ k }}u));  //$ for k in range(items)
    workgroupBarrier();
