"""Tables, figures and pages of a run, beside the numbers of the paper."""
