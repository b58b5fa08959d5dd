"""Every option, parameter and column that the reference documents, pushed through every door that takes it: a legal value, each
bound, what lies beyond it, and values of wrong types. Nothing but success or a typed error with a hint may come out."""
