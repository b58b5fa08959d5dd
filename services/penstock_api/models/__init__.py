"""The models of requests and answers: one file a subject."""
