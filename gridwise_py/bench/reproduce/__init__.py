"""`gridwise reproduce`: what others have claimed about timing on GPUs, measured here, each with a verdict."""
