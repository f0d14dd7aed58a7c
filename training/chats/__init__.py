"""Whole conversations written for training, with what each statement ends."""
