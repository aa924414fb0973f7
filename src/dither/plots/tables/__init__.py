"""Pictures of releases, previews, and synthetic tables."""
