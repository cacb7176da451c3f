// The columns of an invocation: WIDTH neighbouring ones.
const WIDTH: u32 = {{ width }}u;
const VECS: u32 = {{ vecs }}u;  // rows that an invocation loads at once
//$ if width == 4
alias Columns = Quad;
fn start() -> Columns { return quad_of(identity()); }
fn join(a: Columns, b: Columns) -> Columns { return combine4(a, b); }
fn load(i: u32) -> Columns { return item4(i); }
fn save(i: u32, x: Columns) { put4(i, x); }
//$ else
alias Columns = Acc;
fn start() -> Columns { return identity(); }
fn join(a: Columns, b: Columns) -> Columns { return combine(a, b); }
fn load(i: u32) -> Columns { return item(i); }
fn save(i: u32, x: Columns) { put(i, x); }
//$ endif
