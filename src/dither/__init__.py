"""Learn from sensitive data without learning about any one person in it."""

__version__ = "0.1.0"
