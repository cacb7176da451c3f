// Writes what a stream gives for an item to place `at` of an output: an item from registers, the item i as it is loaded, or its
// position. What does not fit is only counted. The plan knows what is written: of each field in `moved` where it is stored, and
// what, once for each element of the item.
//$ for f in moved
//$ for output in f.outputs
fn write_to_{{ output }}(at: u32, {{ f.given }}) {
  if (at < params.room) {
    store_{{ output }}({{ place }}, {{ item }});  //$ for place, item in f.stores
  }
}
//$ endfor
//$ endfor
