"""How the sentence encoder was made."""
