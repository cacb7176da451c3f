// Puts registers in the order of their ranks through workgroup memory that holds the whole tile; else sort_exchange_parts.wgsl.
// The body of a loop over items_of (keys, values). stage_NAME ends with a barrier; the one below frees the memory again.
    stage_{{ items_of.name }}(0u);
    {{ items_of.name }}[{{ k }}] = staged_{{ items_of.name }}(tile_position({{ k }}u));  //$ for k in range(items)
    workgroupBarrier();
