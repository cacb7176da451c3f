// The chain of a segmented scan: how many runs begin in a range of items, and the value of the run that is open at its end.
// The words of the value are behind the count, in one vector, so that it is shuffled and selected as one value.
alias Chain = vec{{ 1 + acc.words }}<u32>;
//$ if acc.words == 1
fn chain_of(heads: u32, value: Acc) -> Chain { return Chain(heads, pack(value)); }
fn chain_value(x: Chain) -> Acc { return unpack(x.y); }
//$ else
fn chain_of(heads: u32, value: Acc) -> Chain { return Chain(heads, value); }
fn chain_value(x: Chain) -> Acc { return x.y{{ "zw"[:acc.words - 1] }}; }
//$ endif
fn chain_identity() -> Chain { return chain_of(0u, identity()); }
// A head in `b` begins a new run: nothing of `a` reaches its value.
fn chain_combine(a: Chain, b: Chain) -> Chain {
  return chain_of(a.x + b.x, after_head(chain_value(a), chain_value(b), b.x != 0u));
}
// `before` and `here` combined, but `here` alone where a head lies between them, or in `here`.
fn after_head(before: Acc, here: Acc, is_head: bool) -> Acc { return select(combine(before, here), here, is_head); }
