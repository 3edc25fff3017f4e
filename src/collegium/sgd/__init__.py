"""Direct training: models learnt from people's records by noisy, clipped steps, each person by their budget."""
