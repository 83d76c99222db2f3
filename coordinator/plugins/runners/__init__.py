"""The built-in runners, a class per file: which users or arrivals they ask for as time passes.

Other files hold parts that several runners share: rates, schedules and parts of schemas.
"""
