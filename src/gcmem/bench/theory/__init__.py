"""The paper's theorems as experiments."""
