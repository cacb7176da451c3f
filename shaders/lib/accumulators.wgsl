// Accumulators in memory, {{ acc.words }} words each: load_acc_NAME(i) of the arguments in `raw`, store_acc_NAME(i, x) of those
// in `raw_written`. Arguments that are computed have such functions already.
//$ for operand in raw if operand not in computed
fn load_acc_{{ operand }}(i: u32) -> Acc {
  let first = {{ acc.words ~ "u * i" if acc.words > 1 else "i" }};
  return {{ "Acc" if acc.words > 1 else "unpack" }}(
    load_{{ operand }}(first{{ " + %du" % k if acc.words > 1 }}),  //$ for k in range(acc.words)
  );
}
//$ endfor
//$ for operand in raw_written if operand not in computed
fn store_acc_{{ operand }}(i: u32, x: Acc) {
  store_{{ operand }}({{ acc.words ~ "u * i + %du, x[%d]" % (k, k) if acc.words > 1 else "i, pack(x)" }});  //$ for k in range(acc.words)
}
//$ endfor
