"""What `bittrue.qnn` is made of: TVM's calls, answered by graphs that the public API prepares and runs."""
