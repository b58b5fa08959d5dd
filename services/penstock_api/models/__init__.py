"""The models of requests and answers, a file for each subject."""
