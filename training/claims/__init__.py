"""How the detector of claims was made."""
