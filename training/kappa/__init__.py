"""How the shipped conflict oracle was made: data, model, training, export, evaluation."""
