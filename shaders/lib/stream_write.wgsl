// Writes what a stream gives for an item to place `at` of an output: an item from registers, the item i as it is loaded, or its
// position. What does not fit is only counted.
//$ for f in moved
//$ for output in f.outputs
fn write_to_{{ output }}(at: u32, {{ f.given }}) {
  if (at < params.room) {
//$ if f.source == "index"
    store_{{ output }}(at, params.first + i);
//$ elif f.source == "late"
//$ for e in range(f.elements)
    store_{{ output }}({{ f.elements }}u * at + {{ e }}u, load_{{ f.name }}({{ f.elements }}u * i + {{ e }}u));
//$ endfor
//$ else
    store_{{ output }}(at, item);
//$ endif
  }
}
//$ endfor
//$ endfor
