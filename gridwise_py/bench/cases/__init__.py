"""What is measured: primitives at a size, on which data, in which mode; what each case is called."""
