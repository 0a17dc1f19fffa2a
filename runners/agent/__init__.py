"""The program on the machine: claims a lease, runs its commands, ships what they leave behind, and goes away.

Standard library and `runners.protocol` only, Python 3.9 and newer, because machine images ship old interpreters. It
must not know what is compared or why: it is given commits, commands and an order.
"""
