"""Tables, figures and the HTML page of a run, next to the paper's figures."""
