"""Noisy columns and pairs become rows of rank cells.

Everything here acts after the noise, also on a release that is loaded from a file years later, and on what the gate
expects of further pairs. A file holds none of the constants of this room. So they are constants of modules and no part
of `privmeasure.plans.tuning`: a release gives the same rows wherever it is loaded. To change one is to change the rows
of every release that exists.
"""
