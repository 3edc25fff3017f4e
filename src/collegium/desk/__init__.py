"""The desk: pages for those who keep a ledger, and one page for each person in it."""
