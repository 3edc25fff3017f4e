"""Studies of votes: teachers vote, labels are released, and a student learns from these."""
