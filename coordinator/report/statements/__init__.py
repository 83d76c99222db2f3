"""Words on a workload, said once: the terminal shows all of them, the page those it lacks."""
