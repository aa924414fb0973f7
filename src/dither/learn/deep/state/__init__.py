"""What a model can reach while it runs: watched, drawn secretly, put back."""
