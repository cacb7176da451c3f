// Stores the results of a row that is whole, item by item.
    put(i + {{ k }}u, results_{{ k // 4 }}.{{ "xyzw"[k % 4] }});  //$ for k in range(4 * quads)
