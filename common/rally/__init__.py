"""The bridge to Rally: its scenarios, contexts and the rest behind osbench's own interfaces.

Nothing here imports Rally before `loading.load` is called, and nothing outside imports Rally.
"""
