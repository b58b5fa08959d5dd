"""What requests hold and answers say: one file a subject."""
