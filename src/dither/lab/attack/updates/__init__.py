"""What clients' updates give away in federated learning."""
