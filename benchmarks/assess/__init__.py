"""What accuses a release that leaks: ours beside peers."""
