"""`gridwise ab`: two versions of this library, measured in turns on one GPU, and judged by paired differences."""
