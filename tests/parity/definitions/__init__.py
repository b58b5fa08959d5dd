"""What the rows run: modules as users write them, given to `penstock apply` and to workers."""
