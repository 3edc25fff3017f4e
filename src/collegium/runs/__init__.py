"""What every way of learning shares: records, what a model sees of them, who is told, estimators."""
