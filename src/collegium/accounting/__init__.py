"""What answering costs whom: pure mathematics, without I/O, randomness or hidden state."""
