"""Parts of osbench measured in a process of their own, as the coordinator calls them."""
