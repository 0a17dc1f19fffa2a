"""Numbers: what a metric is, what the files of a run hold, whether head differs from base.

Pure, and it knows no other part of the project.
"""
