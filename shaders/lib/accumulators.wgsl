// Accumulators in memory, {{ acc.words }} words each.
//$ for operand in raw
//$ if operand not in computed
//$ if acc.words == 1
fn load_acc_{{ operand }}(i: u32) -> Acc { return unpack(load_{{ operand }}(i)); }
//$ else
fn load_acc_{{ operand }}(i: u32) -> Acc {
  let first = {{ acc.words }}u * i;
  return Acc(
    load_{{ operand }}(first + {{ k }}u),  //$ for k in range(acc.words)
  );
}
//$ endif
//$ if acc.fields and operand != "carries"
// Items i to i + 3, which are {{ acc.words }} vec4 of words; i is a multiple of 4.
fn load4_acc_{{ operand }}(i: u32) -> Quad {
  let first = {{ acc.words }}u * i;
  let row_{{ r }} = load4_{{ operand }}(first + {{ 4 * r }}u);  //$ for r in range(acc.words)
  return Quad(
//$ for q in range(4)
    Acc(
//$ for k in range(acc.words)
//$ set word = q * acc.words + k
      row_{{ word // 4 }}.{{ "xyzw"[word % 4] }},
//$ endfor
    ),
//$ endfor
  );
}
//$ endif
//$ endif
//$ endfor
//$ for operand in raw_written
//$ if operand not in computed
fn store_acc_{{ operand }}(i: u32, x: Acc) {
//$ if acc.words == 1
  store_{{ operand }}(i, pack(x));
//$ else
  store_{{ operand }}({{ acc.words }}u * i + {{ k }}u, x[{{ k }}]);  //$ for k in range(acc.words)
//$ endif
}
//$ if acc.fields and operand != "carries"
fn store4_acc_{{ operand }}(i: u32, x: Quad) {
  let first = {{ acc.words }}u * i;
//$ for r in range(acc.words)
  store4_{{ operand }}(first + {{ 4 * r }}u, vec4<u32>(
//$ for word in range(4 * r, 4 * r + 4)
    x.{{ "xyzw"[word // acc.words] }}{{ "[%d]" % (word % acc.words) if acc.words > 1 }},
//$ endfor
  ));
//$ endfor
}
//$ endif
//$ endif
//$ endfor
