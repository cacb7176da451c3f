"""What tests of several folders share: inputs, references, invented results, and programs that tests start."""
