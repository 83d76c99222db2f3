"""Rally's own SLA classes behind JSON lines; runs in Rally's environment, knows no osbench."""

import json
import sys

from rally import plugins
from rally.task import sla


def judged(criterion, config, iterations):
    """Success and detail of a criterion that saw some iterations."""
    checker = sla.SLAChecker({"sla": {criterion: config}})
    for iteration in iterations:
        checker.add_iteration(iteration)
    (result,) = checker.results()
    return result


def answer(question):
    """Judge iterations, or report what is wrong with a configuration."""
    criterion, config = question["criterion"], question["config"]
    if "iterations" in question:
        return judged(criterion, config, question["iterations"])
    return sla.SLA.validate(criterion, {}, {}, config)


plugins.load()
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
