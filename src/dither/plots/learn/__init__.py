"""Pictures of models, votes and federated rounds."""
