"""The words of the five documents that Penstock was built from: each fragment, option, event and status has its equal here."""
