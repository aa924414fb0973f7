"""Pictures of attacks and audits."""
