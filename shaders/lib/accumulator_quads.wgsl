// Accumulators i to i + 3 in memory, which are {{ acc.words }} vec4 of words; i is a multiple of 4.
//$ for operand in raw if operand not in computed and operand != "carries"
fn load4_acc_{{ operand }}(i: u32) -> Quad {
  let first = {{ acc.words }}u * i;
  let row_{{ r }} = load4_{{ operand }}(first + {{ 4 * r }}u);  //$ for r in range(acc.words)
  return Quad(
//$ for q in range(4)
    Acc(
      row_{{ word // 4 }}.{{ "xyzw"[word % 4] }},  //$ for word in range(q * acc.words, (q + 1) * acc.words)
    ),
//$ endfor
  );
}
//$ endfor
//$ for operand in raw_written if operand not in computed and operand != "carries"
fn store4_acc_{{ operand }}(i: u32, x: Quad) {
  let first = {{ acc.words }}u * i;
//$ for r in range(acc.words)
  store4_{{ operand }}(first + {{ 4 * r }}u, vec4<u32>(
    x.{{ "xyzw"[k // acc.words] }}{{ "[%d]" % (k % acc.words) if acc.words > 1 }},  //$ for k in range(4 * r, 4 * r + 4)
  ));
//$ endfor
}
//$ endfor
