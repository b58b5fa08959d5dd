"""The definitions of the rows: modules as users write them, given to `penstock apply` and to workers."""
