  // Which items the GPU may have counted: n is the number of all, this window has `capacity` of them from `first` on.
//$ if counted
  first: u32,
  capacity: u32,
//$ endif
