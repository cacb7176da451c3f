// The operator of one argument on items (T), alone and four at a time.
alias T = {{ datatype }};

//$ if op.expression
fn apply(x: T) -> T { return {{ op.expression }}; }
fn apply4(x: vec4<T>) -> vec4<T> { return {{ op.expression }}; }
//$ else
// ---- the user's text
{{ op.wgsl }}
// ---- end of the user's text
fn apply4(x: vec4<T>) -> vec4<T> { return vec4<T>(apply(x.x), apply(x.y), apply(x.z), apply(x.w)); }
//$ endif
