"""Durable functions: the context that their code uses (`context`), the comparison of their calls with the recorded ones
(`journal`), and the run of one attempt (`drive`). Not here: the storage of records and the start of children, which the
worker provides (`backend` declares what it has to do). Also not here: the test kit that crashes durable functions,
which is `penstock.testing`."""
