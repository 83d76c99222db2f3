"""Steps, virtual users, end and outcome of one workload under load."""
