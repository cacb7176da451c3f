// Accumulators in memory, {{ acc.words }} words each.
//$ for operand in raw
//$ if acc.words == 1
fn load_acc_{{ operand }}(i: u32) -> Acc { return unpack(load_{{ operand }}(i)); }
//$ else
fn load_acc_{{ operand }}(i: u32) -> Acc {
  let first = {{ acc.words }}u * i;
  return Acc(
//$ for k in range(acc.words)
    load_{{ operand }}(first + {{ k }}u),
//$ endfor
  );
}
//$ endif
//$ endfor
//$ for operand in raw_written
fn store_acc_{{ operand }}(i: u32, x: Acc) {
//$ if acc.words == 1
  store_{{ operand }}(i, pack(x));
//$ else
//$ for k in range(acc.words)
  store_{{ operand }}({{ acc.words }}u * i + {{ k }}u, x[{{ k }}]);
//$ endfor
//$ endif
}
//$ endfor
