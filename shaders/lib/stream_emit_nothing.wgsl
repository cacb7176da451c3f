// Emission of a stream without outputs for its items: they are only counted.
fn announce_total(total: Acc) {}
fn stage_first(tile: u32, count: WorkgroupScan) {}
fn emit_tile(tile: u32, before: Acc, count: WorkgroupScan) {}
