"""The rows of the table, a module each: `NEEDS` names servers, `measure` gives comparisons."""
