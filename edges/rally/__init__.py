"""The bridge to Rally: its scenarios, contexts and other plug-ins behind osbench's interfaces.

Nothing here imports Rally before `importing.load` is called, and no other package imports Rally.
"""
