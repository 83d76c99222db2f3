"""The Zuul job of deploy/zuul, tried with ansible-playbook on this machine."""
