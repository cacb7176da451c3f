// Fields of Params: which items the GPU may have counted. n is how many there are; this window has `capacity` of them, from `first` on.
//$ if counted
  first: u32,
  capacity: u32,
//$ endif
