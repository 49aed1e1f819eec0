"""What can be done to a run. Actions complete, or stop the run with a clear error; they are never half done."""
