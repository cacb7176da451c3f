// Stores the results of a row that is whole.
    // Pairs of lanes swap quads, so that a store of a pair fills sectors of 32 bytes.
    let is_odd = (sg_lane & 1u) != 0u;
    let low = i + select(0u, 4u, is_odd) - select(0u, WIDTH, is_odd);
//$ for q in range(0, quads, 2)
    let words_{{ q }} = lower4(results_{{ q }});
    let words_{{ q + 1 }} = lower4(results_{{ q + 1 }});
    let swapped_{{ q }} = subgroupShuffleXor(select(words_{{ q + 1 }}, words_{{ q }}, is_odd), 1u);
    store4_output(low{{ " + %du" % (4 * q) if q }}, select(words_{{ q }}, swapped_{{ q }}, is_odd));
    store4_output(low + WIDTH{{ " + %du" % (4 * q) if q }}, select(swapped_{{ q }}, words_{{ q + 1 }}, is_odd));
//$ endfor
