"""The attackers of `assess`: each says yes or no of a person, or how like one who was in."""
