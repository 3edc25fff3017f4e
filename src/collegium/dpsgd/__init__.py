"""Direct training: models learnt from people's records by noisy, clipped steps, by each one's budget."""
